import { monotonicFactory } from 'ulid'
import type { Backoff } from './backoff.ts'
import type { JobState } from './states.ts'

/** Whose work it is. It travels with the job and is never a metric label. */
export interface Tenant {
  readonly orgId: string
  readonly workspaceId?: string
}

/** Jobs that come first. */
export interface Predecessors {
  readonly ids: readonly string[]
  /**
   * What happens when one of them becomes a dead letter: `wait` until it is replayed and completes, `run` all the same,
   * or `die` with it. One that was cancelled, superseded or discarded never completes, so then `wait` dies too.
   */
  readonly ifDead: 'wait' | 'run' | 'die'
}

/** Where a job belongs in a trace, in the words of W3C Trace Context. */
export interface TraceContext {
  readonly traceparent: string
  readonly tracestate?: string
}

/** Per-job overrides that are stored beside the job. Unknown fields written by a newer version are kept. */
export interface StoredOptions {
  readonly backoff?: Backoff
  readonly timeoutMs?: number
  /** How many newer completed jobs of the type it stays beside, 0: none; null: it stays, whatever the definition says. */
  readonly keepCompleted?: number | null
  /** The same when it is a dead letter. */
  readonly keepDead?: number | null
  /** The key that a finished job had, where the store has no other place to remember it. */
  readonly releasedKey?: string
  /** Of whoever enqueued it, where somebody traces. */
  readonly trace?: TraceContext
}

/** A job as the core hands it to an engine: checked, complete, with everything resolved. */
export interface NewJob {
  /** A ULID chosen by the core, so that repeating an enqueue after a lost reply is harmless. */
  readonly id: string
  readonly type: string
  /** JSON text. Engines store it as it is and never look inside. */
  readonly payload: string
  readonly payloadVersion: number
  readonly priority: number
  /** Starts in total, the first included. */
  readonly attempts: number
  /** From the engine's own now. Zero when `runAtMs` is given. */
  readonly delayMs: number
  readonly runAtMs: number | null
  readonly key: string | null
  readonly latest: { readonly key: string; readonly seq: number | null } | null
  readonly tenant: Tenant | null
  readonly options: StoredOptions | null
  /** Never together with `latest`. */
  readonly after: Predecessors | null
}

/** A job as a worker receives it. A foreign producer may have written it: only the stored columns are certain. */
export interface StoredJob {
  readonly id: string
  readonly type: string
  readonly payload: string
  readonly payloadVersion: number
  readonly priority: number
  readonly attempts: number
  readonly createdAtMs: number
  readonly runAtMs: number
  readonly key: string | null
  readonly latestKey: string | null
  readonly tenant: Tenant | null
  readonly options: StoredOptions | null
  readonly after: Predecessors | null
}

/** Why a job that is neither completed nor waiting will not run: absent on an ordinary dead letter. */
export type Ended = 'cancelled' | 'superseded' | 'discarded'

export interface ErrorRecord {
  readonly name: string
  readonly code: string | null
  readonly message: string
  readonly stack: string | null
}

/** A job as it is shown: what `mill.job(id)`, the CLI and the HTTP API return. */
export interface JobView extends StoredJob {
  readonly state: JobState
  readonly ended: Ended | null
  /** Starts so far, since it was last replayed. */
  readonly attempt: number
  /** How often it was put back from the dead letters. */
  readonly replays: number
  readonly progress: unknown
  readonly result: unknown
  readonly error: ErrorRecord | null
  readonly leaseOwner: string | null
  readonly leaseUntilMs: number | null
  readonly updatedAtMs: number
  readonly startedAtMs: number | null
  readonly completedAtMs: number | null
  readonly durationMs: number | null
}

export const JOB_EVENT_NAMES = [
  'enqueued',
  'started',
  'completed',
  'failed',
  'retried',
  'dead',
  'released',
  'expired',
  'cancelled',
  'superseded',
  'discarded',
  'replayed',
] as const

export type JobEventName = (typeof JOB_EVENT_NAMES)[number]

/** One line of a job's history, oldest first. */
export interface JobEvent {
  readonly jobId: string
  readonly atMs: number
  readonly name: JobEventName
  readonly attempt: number
  readonly worker: string | null
  readonly detail: Readonly<Record<string, unknown>> | null
}

/** How a trace follows a job from whoever enqueues it to whoever runs it. Nothing here knows who traces. */
/** One start of a job, as a tracer is told of it. */
export interface TracedStart {
  readonly job: StoredJob
  readonly attempt: number
  readonly worker: string
}

/** Stands around the two places where a job passes from one process to another. */
export interface Tracer {
  /** Calls `store` with the jobs as they are to be stored: with the trace that they belong to. */
  enqueue<T>(jobs: readonly NewJob[], store: (jobs: readonly NewJob[]) => Promise<T>): Promise<T>
  /** Calls `run`, once and at once, so that whatever it does belongs to the trace of the job. */
  run(start: TracedStart, run: () => void): void
}

/** Where a mill's tracer stands. Null costs nothing but this look. */
export interface Tracing {
  tracer: Tracer | null
}

/**
 * How many lines of history a job has at most. A job that is retried or deferred for weeks would otherwise grow without
 * end. The oldest go first, but for the line that tells when the job was enqueued. Engines may store fewer.
 */
export const HISTORY_MAX = 200

/** The lines that are shown, of all that a job's record tells. */
export function newestHistory(events: readonly JobEvent[]): readonly JobEvent[] {
  const [first] = events
  if (first === undefined || events.length <= HISTORY_MAX) return events
  return first.name === 'enqueued' ? [first, ...events.slice(1 - HISTORY_MAX)] : events.slice(-HISTORY_MAX)
}

/**
 * What a line says, from what an engine stored: without the start that it keeps there to tell it as a line of its own, and
 * with the error of a failure in one place on every engine.
 */
export function historyDetail(
  stored: Readonly<Record<string, unknown>> | null | undefined,
): Readonly<Record<string, unknown>> | null {
  if (stored === null || stored === undefined) return null
  const { startedAtMs: _, name, code = null, message, stack = null, ...rest } = stored
  if (typeof name === 'string' && typeof message === 'string') return { ...rest, error: { name, code, message, stack } }
  const { startedAtMs: __, ...detail } = stored
  return Object.keys(detail).length === 0 ? null : detail
}

const nextUlid = monotonicFactory()

/** A ULID: sortable by creation time, and strictly increasing within this process (X122). */
export function newJobId(nowMs: number): string {
  return nextUlid(nowMs)
}
