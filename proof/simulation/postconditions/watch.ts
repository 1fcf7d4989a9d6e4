/** What must be true right after a call. Nothing else happens meanwhile, so the store can be asked at once. */
import { isDeepStrictEqual } from 'node:util'
import type { Engine } from '../../../src/engine/engine.ts'
import { fieldOf } from '../../../src/errors.ts'
import type { JobView } from '../../../src/job/job.ts'
import type { Clock } from '../../../src/time/clock.ts'

export interface HeldLease {
  readonly token: string
  /** On the monotonic clock: a lease ends in its time, wherever the wall clock is set. */
  untilMs: number
  /** A settle of it is under way: the job may be handed out again before that is answered. */
  isSettling: boolean
  /** Whether its holder was told of its loss; null when it does not listen. */
  wasTold(): boolean | null
}

export interface KnownRecord {
  readonly revision: string | null
  readonly body: string
  /** On the monotonic clock; null when it does not expire. */
  readonly untilMs: number | null
}

/** A claim that waits in the engine. */
export interface WaitingClaim {
  readonly types: readonly string[]
  readonly perType: Readonly<Record<string, number>>
  readonly isOver: () => boolean
}

/** What all processes of a simulation were told by the store, so that it can be held to it. */
export class Watch {
  readonly clock: Clock
  readonly leases = new Map<string, HeldLease>()
  readonly tokens = new Set<string>()
  /** Ids in the order in which the store took the jobs. Lists are in the order of ids. */
  readonly arrivals = new Set<string>()
  /** By type and latest key, the highest version. */
  readonly versions = new Map<string, number>()
  readonly records = new Map<string, Map<string, KnownRecord>>()
  readonly claims = new Set<WaitingClaim>()
  /** Types with a rate limit or slots: their jobs may wait although they are due. */
  readonly limited = new Set<string>()
  /** When the wall clock was last set, on the monotonic clock. */
  setMs = Number.NEGATIVE_INFINITY
  readonly #tell: (job: string | null, sentence: string) => void

  constructor(clock: Clock, tell: (job: string | null, sentence: string) => void) {
    this.clock = clock
    this.#tell = tell
  }

  /** Writes down that something is not as it must be. */
  expect(isSo: boolean, job: string | null, sentence: () => string): void {
    if (!isSo) this.#tell(job, sentence())
  }

  same(job: string | null, what: string, found: unknown, promised: unknown): void {
    this.expect(
      isDeepStrictEqual(found, promised),
      job,
      () => `${what} is ${excerptOf(found)} and must be ${excerptOf(promised)}`,
    )
  }

  /** Whether the holder of the token still has the job. */
  holds(id: string, token: string): boolean {
    const held = this.leases.get(id)
    return held?.token === token && held.untilMs > this.clock.monotonicMs()
  }
}

const EXCERPT_MAX = 300

/** Lists of records are long, and where two differ stands in the history. */
function excerptOf(value: unknown): string {
  const text = JSON.stringify(value) ?? 'undefined'
  return text.length <= EXCERPT_MAX ? text : `${text.slice(0, EXCERPT_MAX)}…`
}

/** Errors that say that nothing was done. All others need a fault, and faults do not reach the engine. */
const REFUSALS: readonly unknown[] = ['ERR_JOB_UNKNOWN', 'ERR_OPTION_INVALID', 'ERR_UNSUPPORTED', 'ERR_CLOSED']

/** The answer of an act; it must not fail but for what the caller did wrong. */
export async function answered<Value>(watch: Watch, what: string, act: () => Promise<Value>): Promise<Value> {
  try {
    return await act()
  } catch (error) {
    const code = fieldOf(error, 'code')
    watch.expect(REFUSALS.includes(code), null, () => `${what} failed without a fault: ${String(error)}`)
    throw error
  }
}

/** By id; those that are gone are left out. */
export async function viewsOf(engine: Engine, ids: readonly string[]): Promise<ReadonlyMap<string, JobView>> {
  if (ids.length === 0) return new Map()
  const views = (await engine.inspector?.find(ids)) ?? []
  return new Map(views.flatMap((view) => (view === null ? [] : [[view.id, view] as const])))
}

const ALL = 1_000

export async function allJobs({ inspector }: Engine): Promise<readonly JobView[]> {
  return (await inspector?.list({ limit: ALL })) ?? []
}

export const isLive = ({ state }: JobView): boolean => state === 'queued' || state === 'in_progress'

/** A call that was refused leaves a job as it was. Due times may move in the call that notices that the clock was set. */
export function judgeUnchanged(
  watch: Watch,
  { id, what }: { readonly id: string; readonly what: string },
  found: JobView | undefined,
  before: JobView | undefined,
): void {
  const wasSet = watch.clock.monotonicMs() - watch.setMs < 1
  const fieldsOf = (view: JobView | undefined): unknown => {
    if (view === undefined) return null
    const { state, attempt, payload, runAtMs, result, replays, priority, error } = view
    return { state, attempt, payload, runAtMs: wasSet ? null : runAtMs, result, replays, priority, error }
  }
  watch.same(id, `${id} after a refused ${what}`, fieldsOf(found), fieldsOf(before))
}
