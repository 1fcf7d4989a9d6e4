import type { TypeTally } from '../engine/history/tally.ts'
import { IndexedSet } from '../engine/indexed-set.ts'
import { limitsNow, type RateLimit, type TypeLimits } from '../engine/limits.ts'
import { MillraceError, OptionError } from '../errors.ts'
import type { MillEvents } from '../events.ts'
import type { AnyJob } from '../job/definition.ts'
import type { ActiveJob, WorkedType } from './active-job.ts'

/** Slots for handlers: `concurrency` in the worker, fewer for a type with its own limit. */
export class Slots {
  readonly concurrency: number
  readonly types: ReadonlyMap<string, WorkedType>
  readonly #occupied = new IndexedSet<ActiveJob>()
  /** Types with their own concurrency. */
  #narrow: readonly WorkedType[] = []
  /** Types of this worker that are paused. */
  #paused: readonly string[] = []
  /**
   * Jobs are claimed ahead only where every type may use any slot: a waiting job of a narrow or rate-limited type, or of one
   * with slots over all workers, would hold a slot or a permit that another worker could use.
   */
  mayClaimAhead = true

  constructor(concurrency: number, types: ReadonlyMap<string, WorkedType>) {
    this.concurrency = concurrency
    this.types = types
    this.#weigh()
  }

  #weigh(): void {
    const all = [...this.types.values()]
    this.#narrow = all.filter((type) => type.concurrency !== null)
    this.mayClaimAhead = !all.some(isLimited)
  }

  /** Takes up limits that operators have set, and the definitions' where they have set none. Answers the types that changed. */
  limit(set: ReadonlyMap<string, TypeLimits>): MillEvents['worker.limited']['types'] {
    const changed = [...this.types].flatMap(([type, worked]) => {
      const now = limitsNow(worked.definition, set.get(type) ?? {})
      const { concurrency, limit, slots } = now
      const isSame = concurrency === worked.concurrency && slots?.max === worked.slots?.max
      if (isSame && isSameRate(limit, worked.limit)) return []
      Object.assign(worked, now)
      return [{ type, concurrency: slots?.max ?? concurrency, limit }]
    })
    if (changed.length > 0) this.#weigh()
    return changed
  }

  isLimited(name: string): boolean {
    const type = this.types.get(name)
    return type !== undefined && isLimited(type)
  }

  /** Whether a claimed job may start, or wait for a slot. It may not if the limits of its type were changed since the claim. */
  mayHold(type: WorkedType): boolean {
    return roomOf(type) > 0 && (this.free > 0 || !isLimited(type))
  }

  get free(): number {
    return this.concurrency - this.#occupied.size
  }

  get occupied(): number {
    return this.#occupied.size
  }

  /** The running jobs, in the order of their claims. */
  running(): readonly ActiveJob[] {
    return this.#occupied.values().sort((one, other) => one.handle - other.handle)
  }

  occupy(active: ActiveJob): void {
    this.#occupied.add(active)
    active.type.running += 1
  }

  /** False when it had no slot. */
  vacate(active: ActiveJob): boolean {
    if (!this.#occupied.delete(active)) return false
    active.type.running -= 1
    return true
  }

  get paused(): readonly string[] {
    return this.#paused
  }

  /** Keeps the types that this worker runs. False if nothing changed. */
  pause(paused: ReadonlySet<string>): boolean {
    const before = this.#paused
    this.#paused = [...this.types.keys()].filter((type) => paused.has(type))
    return before.join('\n') !== this.#paused.join('\n')
  }

  isPaused(type: string): boolean {
    return this.#paused.length > 0 && this.#paused.includes(type)
  }

  /** How many more jobs of each narrow or paused type may start. Undefined if there is no such type. */
  room(): Record<string, number> | undefined {
    if (this.#narrow.length + this.#paused.length === 0) return undefined
    return Object.fromEntries([
      ...this.#narrow.map((type) => [type.definition.type, roomOf(type)]),
      ...this.#paused.map((type) => [type, 0]),
    ])
  }

  /** How many of `max` jobs can start, given the `room` of narrow and paused types. */
  startable(max: number, room: Readonly<Record<string, number>> | undefined): number {
    if (room === undefined || Object.keys(room).length < this.types.size) return max
    return Math.min(
      max,
      Object.values(room).reduce((sum, places) => sum + places, 0),
    )
  }

  /** Whether a claim excludes a type that has room now, or includes a type that is now paused. */
  isOutdated(room: Readonly<Record<string, number>> | undefined): boolean {
    if (room === undefined) return this.#paused.length > 0
    if (this.#paused.some((type) => room[type] !== 0)) return true
    return Object.entries(room).some(([type, places]) => places === 0 && this.#mayStart(type))
  }

  #mayStart(name: string): boolean {
    const type = this.types.get(name)
    return type !== undefined && !this.isPaused(name) && roomOf(type) > 0
  }
}

function roomOf({ concurrency, running }: WorkedType): number {
  return Math.max(0, (concurrency ?? Number.POSITIVE_INFINITY) - running)
}

function isLimited({ concurrency, limit, slots }: WorkedType): boolean {
  return concurrency !== null || limit !== null || slots !== null
}

function isSameRate(one: RateLimit | null, other: RateLimit | null): boolean {
  return one?.max === other?.max && one?.perMs === other?.perMs
}

/** The jobs of a worker by type. Refuses definitions that cannot run. `makeTally`: where the store keeps a history. */
export function workedTypes(
  jobs: readonly AnyJob[],
  makeTally: () => TypeTally | null = () => null,
): ReadonlyMap<string, WorkedType> {
  if (jobs.length === 0) throw new OptionError('a worker needs at least one job; pass the definitions that it runs')
  const types = new Map<string, WorkedType>()
  for (const definition of jobs) {
    const { type, run, byName, concurrency, limit, slots } = definition
    if (types.has(type)) {
      throw new OptionError(`two definitions have the type '${type}'; a worker can run only one of them`)
    }
    if (run === null) throw noHandler(type)
    for (const named of byName?.values() ?? []) if (named.run === null) throw noHandler(named.type)
    const counts = { running: 0, endedAtMs: null, completed: 0, failed: 0, tally: makeTally() }
    types.set(type, { definition, run, concurrency, limit, slots, ...counts })
  }
  return types
}

function noHandler(type: string): MillraceError {
  return new MillraceError(
    'ERR_HANDLER_MISSING',
    `job '${type}' has no handler; pass '${type}' with one: definition.handledBy(run), or give 'run' to defineJob`,
  )
}
