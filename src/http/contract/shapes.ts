/** Shapes that several routes share. Times are milliseconds since 1970; names are those of the package's API. */
import { z } from 'zod'
import { LOG_LEVELS } from '../../job/job-log.ts'
import { SEARCH_LENGTH_MAX } from '../../job/search.ts'
import { JOB_STATES } from '../../job/states.ts'
import { TAG_LENGTH_MAX, TAGS_MAX } from '../../job/tags.ts'

export const LIMIT_MAX = 500

/** Opaque to clients: the `next` of the previous page. */
export const cursor = z.string().min(1).max(400)

export const limit = z.coerce.number().int().min(1).max(LIMIT_MAX).default(50)

export const jobId = z.string().min(1).max(300)
export const typeName = z.string().min(1).max(128)
/** The end of the year 9999: stores keep times as text, which sorts correctly up to there. */
export const TIME_MS_MAX = 253_402_300_799_999
export const timeMs = z.coerce.number().int().min(0).max(TIME_MS_MAX)

/** The reason of an action, stored in the audit. */
export const reason = z.string().trim().min(1).max(500)

export const Pause = z.object({ type: z.string(), sinceMs: z.number(), who: z.string(), reason: z.string() })

export const ByReason = z.strictObject({ reason: reason.optional() })

export function page<Item extends z.ZodType>(item: Item) {
  return z.object({
    items: z.array(item),
    /** The cursor of the next page; null on the last. */
    next: cursor.nullable(),
  })
}

/** A page of a list that can be searched. */
export function searchedPage<Item extends z.ZodType>(item: Item) {
  return page(item).extend({
    /** How far a search has looked for this page; null without one. While `next` is not null, it can look further. */
    searched: z
      .object({
        looked: z.number(),
        /** All that is newer was looked at; null where the store does not have it in the order of time. */
        reachedMs: z.number().nullable(),
      })
      .nullable(),
  })
}

/** See the language of searches in docs/dashboard.md. */
export const search = z.string().trim().min(1).max(SEARCH_LENGTH_MAX)

export const Issues = z.array(z.object({ path: z.string(), message: z.string() }))

/** Every error. `code` is stable, `message` says what to do next. */
export const Problem = z.object({
  code: z.string(),
  message: z.string(),
  /** The invalid parts of the request. */
  issues: Issues.optional(),
})

export const Tenant = z.object({ orgId: z.string(), workspaceId: z.string().optional() })

export const NewTenant = z.strictObject({
  orgId: z.string().min(1).max(128),
  workspaceId: z.string().min(1).max(128).optional(),
})

export const NewTags = z.array(z.string().min(1).max(TAG_LENGTH_MAX)).max(TAGS_MAX)

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
  priority: z.number(),
  attempt: z.number(),
  attempts: z.number(),
  replays: z.number(),
  key: z.string().nullable(),
  latestKey: z.string().nullable(),
  tenant: Tenant.nullable(),
  tags: z.array(z.string()),
  progress: z.unknown(),
  error: ErrorRecord.omit({ stack: true }).nullable(),
  leaseOwner: z.string().nullable(),
  leaseUntilMs: z.number().nullable(),
  /** These three are null when another program wrote an unreadable time. */
  createdAtMs: z.number().nullable(),
  runAtMs: z.number().nullable(),
  updatedAtMs: z.number().nullable(),
  startedAtMs: z.number().nullable(),
  completedAtMs: z.number().nullable(),
  durationMs: z.number().nullable(),
})

/** A job with its payload, result and progress; secrets in them are replaced by `[redacted]`. */
export const JobDetail = JobSummary.extend({
  /** Invalid JSON of another program is given as text. */
  payload: z.unknown(),
  payloadVersion: z.number(),
  result: z.unknown(),
  error: ErrorRecord.nullable(),
  options: z.record(z.string(), z.unknown()).nullable(),
  after: z.object({ ids: z.array(z.string()), ifDead: z.enum(['wait', 'run', 'die']) }).nullable(),
})

export const JobEvent = z.object({
  jobId: z.string(),
  /** Null when another program wrote an unreadable time. */
  atMs: z.number().nullable(),
  name: z.string(),
  attempt: z.number(),
  worker: z.string().nullable(),
  detail: z.record(z.string(), z.unknown()).nullable(),
})

/** What a handler said. */
export const LogLine = z.object({
  /** Counts every line of the job from 1, also those that are no longer kept. */
  seq: z.number(),
  /** By the clock of the worker. */
  atMs: z.number(),
  level: z.enum(LOG_LEVELS),
  attempt: z.number(),
  worker: z.string(),
  message: z.string(),
  fields: z.record(z.string(), z.unknown()).nullable(),
})

/** One action, with who and why. */
export const AuditEntry = z.object({
  seq: z.number(),
  atMs: z.number(),
  who: z.string(),
  reason: z.string(),
  action: z.string(),
  jobId: z.string(),
  type: z.string(),
  /** The subject of the action if it is not a job, such as a schedule's name. */
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

/** Why a job is not running, or what it is doing. */
export const Explanation = z.object({
  /** Such as `delayed`, `waits-for-jobs`, `paused`, `limit-reached`, `no-worker`, `running`, `completed`. */
  because: z.string(),
  /** One sentence. */
  text: z.string(),
  /** Further reasons. */
  also: z.array(z.string()),
  /** When it may start, if known. */
  untilMs: z.number().nullable(),
  /** Jobs that it waits for, or that occupy its limit. */
  jobs: z.array(z.object({ id: z.string(), type: z.string(), state: z.string() })),
})
