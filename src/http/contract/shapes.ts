/** Shapes that several routes share. Times are milliseconds since 1970; names are those of the API of the package. */
import { z } from 'zod'
import { JOB_STATES } from '../../job/states.ts'

export const LIMIT_MAX = 500

/** Opaque to clients: what the page before answered as `next`. */
export const cursor = z.string().min(1).max(400)

export const limit = z.coerce.number().int().min(1).max(LIMIT_MAX).default(50)

export const jobId = z.string().min(1).max(300)
export const typeName = z.string().min(1).max(128)
/** The end of the year 9999: stores keep times as text that sorts as time only up to there. */
export const TIME_MS_MAX = 253_402_300_799_999
export const timeMs = z.coerce.number().int().min(0).max(TIME_MS_MAX)

/** Why somebody acts; it is stored with the act. */
export const reason = z.string().trim().min(1).max(500)

export const ByReason = z.strictObject({ reason: reason.optional() })

export function page<Item extends z.ZodType>(item: Item) {
  return z.object({
    items: z.array(item),
    /** The cursor of the page after this one; null on the last. */
    next: cursor.nullable(),
  })
}

/** Every refusal. `code` is stable, `message` says what to do next. */
export const Problem = z.object({
  code: z.string(),
  message: z.string(),
  /** Which part of the request is wrong, where it is one. */
  issues: z.array(z.object({ path: z.string(), message: z.string() })).optional(),
})

export const Tenant = z.object({ orgId: z.string(), workspaceId: z.string().optional() })

export const ErrorRecord = z.object({
  name: z.string(),
  code: z.string().nullable(),
  message: z.string(),
  stack: z.string().nullable(),
})

export const JobSummary = z.object({
  id: z.string(),
  type: z.string(),
  state: z.enum(JOB_STATES),
  ended: z.enum(['cancelled', 'superseded', 'discarded']).nullable(),
  priority: z.number(),
  attempt: z.number(),
  attempts: z.number(),
  replays: z.number(),
  key: z.string().nullable(),
  latestKey: z.string().nullable(),
  tenant: Tenant.nullable(),
  progress: z.unknown(),
  error: ErrorRecord.omit({ stack: true }).nullable(),
  leaseOwner: z.string().nullable(),
  leaseUntilMs: z.number().nullable(),
  /** These three are null where another program wrote a time that cannot be read. */
  createdAtMs: z.number().nullable(),
  runAtMs: z.number().nullable(),
  updatedAtMs: z.number().nullable(),
  startedAtMs: z.number().nullable(),
  completedAtMs: z.number().nullable(),
  durationMs: z.number().nullable(),
})

/** A job with what it carries; sensitive parts of payload, result and progress are replaced by `[redacted]`. */
export const JobDetail = JobSummary.extend({
  /** Undefined JSON of a foreign producer is given as its text. */
  payload: z.unknown(),
  payloadVersion: z.number(),
  result: z.unknown(),
  error: ErrorRecord.nullable(),
  options: z.record(z.string(), z.unknown()).nullable(),
  after: z.object({ ids: z.array(z.string()), ifDead: z.enum(['wait', 'run', 'die']) }).nullable(),
})

export const JobEvent = z.object({
  jobId: z.string(),
  /** Null where another program wrote a time that cannot be read. */
  atMs: z.number().nullable(),
  name: z.string(),
  attempt: z.number(),
  worker: z.string().nullable(),
  detail: z.record(z.string(), z.unknown()).nullable(),
})

/** One act, with who and why. */
export const AuditEntry = z.object({
  seq: z.number(),
  atMs: z.number(),
  who: z.string(),
  reason: z.string(),
  action: z.string(),
  jobId: z.string(),
  type: z.string(),
  /** What was acted on where it is no job, such as a schedule's name. */
  subject: z.string().nullable(),
  before: z.record(z.string(), z.unknown()),
  after: z.record(z.string(), z.unknown()).nullable(),
})

export const TypeCounts = z.object({
  ready: z.number(),
  delayed: z.number(),
  inProgress: z.number(),
  completed: z.number(),
  dead: z.number(),
})

/** Why a job is not running, or what it does. The first line is the main one. */
export const Explanation = z.object({
  /** Such as `delayed`, `waits-for-jobs`, `paused`, `limit-reached`, `no-worker`, `running`, `completed`. */
  because: z.string(),
  /** A sentence for a person. */
  text: z.string(),
  /** Further reasons that hold too. */
  also: z.array(z.string()),
  /** When it may start, where that is known. */
  untilMs: z.number().nullable(),
  /** Jobs that it waits for, or that hold what it needs. */
  jobs: z.array(z.object({ id: z.string(), type: z.string(), state: z.string() })),
})
