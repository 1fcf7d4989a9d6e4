import { hostname } from 'node:os'
import { PUBLISH_EVERY_MS, publishDefinitions } from '../engine/definitions.ts'
import type { TallyWriter } from '../engine/history/tally.ts'
import { type AtWork, type Beat, JOBS_SHOWN_MAX, type Presence } from '../engine/presence.ts'
import type { Records } from '../engine/records.ts'
import { WaitTimeoutError } from '../errors.ts'
import { definitionFacts } from '../job/definition-facts.ts'
import { type Clock, sharedWait } from '../time/clock.ts'
import { waitAtMost } from '../time/wait.ts'
import type { ActiveJob, WorkedType } from './active-job.ts'
import type { Slots } from './slots.ts'
import { Vitals } from './vitals.ts'
import { PROCESS_TAG } from './worker-id.ts'

/** How often a worker reports that it is alive, and how long a report is valid. */
const EVERY_MS = 10_000
const TTL_MS = 30_000
const STOPPING_TTL_MS = 60_000
/** A beat that takes longer is abandoned: the next one is more recent. */
const TELL_MS = 5_000
/** Lags that take longer are unknown. */
const LAGS_MS = 1_000

export interface HeartbeatParts {
  readonly clock: Clock
  readonly presence: Presence
  /** Null where the store keeps no history. */
  readonly tallies: TallyWriter | null
  readonly worker: string
  /** Null: heartbeats have the types. */
  readonly name: string | null
  readonly slots: Slots
  /** Null: strict priority. */
  readonly ageingMs: number | null
  /** Whether it can be asked to stop. */
  readonly drains: boolean
  /** By type, where they are known. */
  lags(): Promise<Readonly<Record<string, number>>>
  /** Where it says what the definitions of its types are, at the first beat and once a day. */
  readonly records?: Records | undefined
  onError(error: unknown): void
}

/**
 * Reports in the engine's store that the worker is alive and what it runs: when it starts, every 10 s, when it begins to
 * stop, and when it has stopped. Everything is read at the time of the beat, so jobs neither pay nor wait for it.
 */
export class Heartbeat {
  readonly #parts: HeartbeatParts
  readonly startedAtMs: number
  #stoppingSinceMs: number | null = null
  #beat: Promise<void> | null = null
  #cancelNext: () => void = () => {}
  #isTroubled = false
  #publishAtMs = Number.NEGATIVE_INFINITY
  #isOver = false
  #lags: Readonly<Record<string, number>> = {}
  readonly #pausedUntilMs = new Map<string, number>()
  readonly #vitals = new Vitals()

  constructor(parts: HeartbeatParts) {
    this.#parts = parts
    this.startedAtMs = parts.clock.nowMs()
  }

  /** Resolves when the first beat has arrived, or has failed. */
  start(): Promise<void> {
    return this.#repeat()
  }

  stopping(): void {
    this.#stoppingSinceMs = this.#parts.clock.nowMs()
    this.#cancelNext()
    void this.#repeat()
  }

  /** Waits for a beat under way, which would otherwise list the worker again. */
  async goodbye(): Promise<void> {
    const { presence, worker, name, slots } = this.#parts
    this.#isOver = true
    this.#vitals.close()
    this.#cancelNext()
    await this.#beat
    await this.#tell(async () => {
      const types = name === null ? [...slots.types.keys()] : [name]
      await Promise.all([presence.gone(worker, types), this.#tally()])
    })
  }

  async #repeat(): Promise<void> {
    if (this.#isOver) return
    this.#cancelNext = this.#parts.clock.after(sharedWait(this.#parts.clock, EVERY_MS), () => void this.#repeat())
    const { presence } = this.#parts
    const ttlMs = this.#stoppingSinceMs === null ? TTL_MS : STOPPING_TTL_MS
    const before = this.#beat
    const beat = (async () => {
      await before
      // A worker that stops says so at once, with the lags that it knew last.
      if (this.#stoppingSinceMs === null) await this.#readLags()
      if (this.#isOver) return
      await this.#tell(async () => void (await Promise.all([presence.beat(this.#beats(), ttlMs), this.#tally()])))
      if (!this.#isOver) await this.#publish()
    })()
    this.#beat = beat
    await beat
  }

  /** What has ended since the last beat, for the history. */
  async #tally(): Promise<void> {
    const { tallies, slots, clock } = this.#parts
    const counted = [...slots.types].flatMap(([type, { tally }]) => (tally === null ? [] : [[type, tally] as const]))
    await tallies?.write(counted, clock.nowMs() - clock.monotonicMs())
  }

  async #publish(): Promise<void> {
    const { clock, records, slots } = this.#parts
    const nowMs = clock.monotonicMs()
    if (records === undefined || nowMs < this.#publishAtMs) return
    await this.#tell(async () => {
      const facts = [...slots.types.values()].map(({ definition }) => definitionFacts(definition))
      await publishDefinitions(records, facts)
      this.#publishAtMs = nowMs + PUBLISH_EVERY_MS
    })
  }

  /** Never rejects. Lags that cannot be read are unknown. */
  async #readLags(): Promise<void> {
    const { clock, lags } = this.#parts
    const read = lags().catch(() => ({}))
    this.#lags = (await waitAtMost(clock, LAGS_MS, read)) ? await read : {}
  }

  /** Never rejects. An outage is reported once, not at every beat. */
  async #tell(say: () => Promise<void>): Promise<void> {
    try {
      const said = say()
      if (!(await waitAtMost(this.#parts.clock, TELL_MS, said))) throw new WaitTimeoutError('a beat', TELL_MS)
      await said
      this.#isTroubled = false
    } catch (error) {
      if (!this.#isTroubled) this.#parts.onError(error)
      this.#isTroubled = true
    }
  }

  #beats(): readonly Beat[] {
    const { clock, worker, name, slots } = this.#parts
    const stoppingSinceMs = this.#stoppingSinceMs
    const atMs = clock.nowMs()
    // Converts monotonic times to wall-clock times.
    const sinceMonotonicMs = atMs - clock.monotonicMs()
    const running = Map.groupBy(slots.running(), ({ type }) => type)
    for (const type of slots.paused) this.#pausedUntilMs.set(type, atMs)
    const vitals = this.#vitals.take(clock.monotonicMs(), slots.types)
    return [...slots.types].map(([type, worked]) => ({
      type,
      ...(name !== null && { name }),
      instance: worker,
      status: stoppingSinceMs === null ? 'RUNNING' : 'SHUTTING_DOWN',
      atMs,
      lastJobAtMs: worked.endedAtMs === null ? null : Math.round(sinceMonotonicMs + worked.endedAtMs),
      lag: this.#lags[type] ?? null,
      stoppingSinceMs,
      work: {
        ...this.#workOf(worked, running.get(worked) ?? [], sinceMonotonicMs),
        ...vitals.ofProcess,
        ...vitals.ofType(type),
      },
    }))
  }

  #workOf(
    { definition, completed, failed }: WorkedType,
    active: readonly ActiveJob[],
    sinceMonotonicMs: number,
  ): AtWork {
    const { slots, ageingMs, drains } = this.#parts
    const pausedUntilMs = this.#pausedUntilMs.get(definition.type)
    return {
      host: hostname(),
      pid: process.pid,
      process: PROCESS_TAG,
      startedAtMs: this.startedAtMs,
      concurrency: slots.concurrency,
      ...(definition.slots !== null && { slots: definition.slots }),
      ...(ageingMs !== null && { ageingMs }),
      running: active.length,
      ...(pausedUntilMs !== undefined && { pausedUntilMs }),
      ended: { completed, failed },
      drains,
      jobs: active.slice(0, JOBS_SHOWN_MAX).map(({ lease, startedAtMs }) => ({
        id: lease.job.id,
        attempt: lease.attempt,
        startedAtMs: Math.round(sinceMonotonicMs + startedAtMs),
      })),
    }
  }
}
