import type { Backoff } from './backoff.ts'
import type { JobState } from './states.ts'
import { monotonicFactory } from './ulid.ts'

/** The tenant of a job. It is stored with the job and is never a metric label. */
export interface Tenant {
  readonly orgId: string
  readonly workspaceId?: string
}

/** The jobs that a job waits for. */
export interface Predecessors {
  readonly ids: readonly string[]
  /**
   * What happens when one of them becomes a dead letter: `wait` until it is replayed and completes, `run` anyway, or `die`
   * with it. A cancelled, superseded or discarded job never completes, so then `wait` dies too.
   */
  readonly ifDead: 'wait' | 'run' | 'die'
}

/** The trace of a job, in the format of W3C Trace Context. */
export interface TraceContext {
  readonly traceparent: string
  readonly tracestate?: string
}

/** Per-job overrides, stored with the job. Unknown fields written by a newer version are kept. */
export interface StoredOptions {
  /** What the job is called within its type. Default: the type. */
  readonly name?: string
  readonly backoff?: Backoff
  readonly timeoutMs?: number
  /** The job is removed once this many newer ones have completed; 0: at once. Null: it stays, even if its type has a limit. */
  readonly keepCompleted?: number | null
  /** The same for a dead letter. */
  readonly keepDead?: number | null
  /** The key of a finished job, where the store has no other place for it. */
  readonly releasedKey?: string
  /** The trace of the producer. */
  readonly trace?: TraceContext
  /** What the job can be found by, such as the import that it belongs to. */
  readonly tags?: readonly string[]
}

/** A job as the core hands it to an engine: checked, with all defaults resolved. */
export interface NewJob {
  /** A ULID chosen by the core, so that an enqueue can be repeated after a lost reply. */
  readonly id: string
  readonly type: string
  /** JSON text. Engines store it unchanged and never parse it. */
  readonly payload: string
  readonly payloadVersion: number
  readonly priority: number
  /** Starts in total, the first included. */
  readonly attempts: number
  /** Counted from the engine's clock. Zero when `runAtMs` is given. */
  readonly delayMs: number
  readonly runAtMs: number | null
  readonly key: string | null
  readonly latest: { readonly key: string; readonly seq: number | null } | null
  readonly tenant: Tenant | null
  readonly options: StoredOptions | null
  /** Never together with `latest`. */
  readonly after: Predecessors | null
}

/** A job as a worker receives it. Another program may have written it, so only the columns are certain. */
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

/** A copy that is a plain object: an engine may read parts of a job only when they are asked for, and `{ ...job }` loses such. */
export function plainJob(job: StoredJob): StoredJob {
  const { id, type, payload, payloadVersion, priority, attempts, createdAtMs, runAtMs } = job
  const { key, latestKey, tenant, options, after } = job
  return {
    ...{ id, type, payload, payloadVersion, priority, attempts, createdAtMs, runAtMs },
    ...{ key, latestKey, tenant, options, after },
  }
}

export interface ErrorRecord {
  readonly name: string
  readonly code: string | null
  readonly message: string
  readonly stack: string | null
}

/** A job as `mill.job(id)`, the CLI and the HTTP API show it. */
export interface JobView extends StoredJob {
  readonly state: JobState
  /** What it was tagged with. */
  readonly tags: readonly string[]
  /** Starts so far, since it was last replayed. */
  readonly attempt: number
  /** How often it was replayed. */
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

/** One entry of a job's history. */
export interface JobEvent {
  readonly jobId: string
  readonly atMs: number
  readonly name: JobEventName
  readonly attempt: number
  readonly worker: string | null
  readonly detail: Readonly<Record<string, unknown>> | null
}

/** One start of a job, as a tracer sees it. */
export interface TracedStart {
  readonly job: StoredJob
  readonly attempt: number
  readonly worker: string
}

/** Carries a trace from the producer of a job to its handler. */
export interface Tracer {
  /** Calls `store` with the jobs, each with its trace. */
  enqueue<T>(jobs: readonly NewJob[], store: (jobs: readonly NewJob[]) => Promise<T>): Promise<T>
  /** Calls `run` synchronously, inside the trace of the job. */
  run(start: TracedStart, run: () => void): void
}

/** Holds a mill's tracer. */
export interface Tracing {
  tracer: Tracer | null
}

/**
 * The most entries in a job's history, which would otherwise grow for weeks with retries. The oldest are dropped first,
 * except for `enqueued`. Engines may store fewer.
 */
export const HISTORY_MAX = 200

/** The newest entries, and `enqueued`. */
export function newestHistory(events: readonly JobEvent[]): readonly JobEvent[] {
  const [first] = events
  if (first === undefined || events.length <= HISTORY_MAX) return events
  return first.name === 'enqueued' ? [first, ...events.slice(1 - HISTORY_MAX)] : events.slice(-HISTORY_MAX)
}

/**
 * The detail of an entry, from what an engine stored: without the start time, which is an entry itself, and with the error
 * of a failure in the same place on every engine.
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

/** A ULID: sortable by creation time, and strictly increasing within this process. */
export function newJobId(nowMs: number): string {
  return nextUlid(nowMs)
}
