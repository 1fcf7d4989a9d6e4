import { z } from 'zod'
import { Operation } from './dead-letters.ts'
import { routes } from './route.ts'
import { ByReason, Pause, reason, TypeCounts, typeName } from './shapes.ts'

const params = z.strictObject({ type: typeName })

const Rate = z.object({ max: z.number(), perMs: z.number() })

/** What is left out is the definition's; null: no limit. */
const TypeLimits = z.object({ concurrency: z.number().nullable().optional(), limit: Rate.nullable().optional() })

const LimitOverride = TypeLimits.extend({ type: z.string(), who: z.string(), reason: z.string(), sinceMs: z.number() })

const whole = z.int().min(1)

/** In milliseconds. */
const Percentiles = z.object({ p50: z.number(), p95: z.number(), p99: z.number() })

const Definition = z.object({
  version: z.number(),
  attempts: z.number(),
  backoff: z.record(z.string(), z.unknown()),
  timeoutMs: z.number(),
  leaseMs: z.number(),
  priority: z.number(),
  /** Of one worker. */
  concurrency: z.number().nullable(),
  /** Over all workers, or for each tenant. */
  slots: z.object({ max: z.number(), by: z.string().nullable().optional() }).nullable(),
  limit: Rate.nullable(),
  critical: z.boolean(),
  keepCompleted: z.number().nullable(),
  keepDead: z.number().nullable(),
  /** How long finished jobs stay, where it differs from the keeper's policy; null: for ever. */
  retention: z.record(z.string(), z.number().nullable()),
  names: z.array(z.string()),
  /** JSON Schema of the payload; null for the reason that `schemaLacks` gives. */
  schema: z.record(z.string(), z.unknown()).nullable(),
  schemaLacks: z.enum(['none', 'unreadable', 'large']).nullable(),
})

const TypeDetail = TypeCounts.extend({
  type: z.string(),
  pause: Pause.nullable(),
  /** Workers of the type; null without presence. */
  workers: z.number().nullable(),
  /** Of this process, or as the worker that started last has published it; null if nobody has. */
  definition: Definition.nullable(),
  /** Whether this process has the definition, and checks payloads with it. */
  defined: z.boolean(),
  /** Limits that hold instead of the definition's; null if none were set. */
  override: LimitOverride.nullable(),
  /** Attempts of its workers that ended per second, by their last heartbeats; null if unknown. */
  perSecond: z.number().nullable(),
  /** The newest completed jobs, at most 500 of the last 15 minutes; null where jobs cannot be listed by state. */
  recent: z
    .object({
      jobs: z.number(),
      /** From when a job was due until its last attempt began. */
      waiting: Percentiles.nullable(),
      running: Percentiles.nullable(),
      /** The mean number of attempts that a job took. */
      attempts: z.number().nullable(),
    })
    .nullable(),
  /** The queued job that has been due longest. `isLeast`: of the newest 500 queued jobs, and an older one may wait. */
  oldest: z.object({ id: z.string(), dueAtMs: z.number(), isLeast: z.boolean() }).nullable(),
})

/** The name is given again, so that no other type is meant. */
const Emptying = z.strictObject({ reason, confirm: z.string().max(128) })

const Started = z.object({ operation: Operation })

export const TYPE_ROUTES = routes({
  showType: {
    method: 'get',
    path: '/api/v1/queues/{type}',
    summary: 'One type: its counts, limits, definition, rate, latencies and oldest job.',
    role: 'viewer',
    params,
    answer: TypeDetail,
  },
  drainType: {
    method: 'post',
    path: '/api/v1/queues/{type}/drain',
    summary: 'Cancels every queued job of a type, page by page. `confirm` repeats the name of the type.',
    role: 'admin',
    needs: 'emptying',
    params,
    body: Emptying,
    answer: Started,
    status: 202,
  },
  obliterateType: {
    method: 'post',
    path: '/api/v1/queues/{type}/obliterate',
    summary: 'Cancels every job of a type and removes all that are over. Dead letters of a critical type stay.',
    role: 'admin',
    needs: 'emptying',
    params,
    body: Emptying,
    answer: Started,
    status: 202,
  },
  listLimits: {
    method: 'get',
    path: '/api/v1/limits',
    summary: 'Limits of types that hold instead of those of their definitions.',
    role: 'viewer',
    needs: 'limiting',
    answer: z.object({ limits: z.array(LimitOverride) }),
  },
  setLimits: {
    method: 'post',
    path: '/api/v1/queues/{type}/limits',
    summary:
      'Changes limits of a type in every worker within two seconds, until they are reset. What is left out stays.',
    role: 'operator',
    needs: 'limiting',
    params,
    body: z.strictObject({
      concurrency: whole.nullable().optional(),
      limit: z.strictObject({ max: whole, perMs: whole }).nullable().optional(),
      reason: reason.optional(),
    }),
    answer: z.object({ type: z.string(), before: TypeLimits, after: TypeLimits }),
  },
  resetLimits: {
    method: 'post',
    path: '/api/v1/queues/{type}/limits/reset',
    summary: 'Lets the limits of the definition hold again.',
    role: 'operator',
    needs: 'limiting',
    params,
    body: ByReason,
    answer: z.object({ type: z.string(), changed: z.boolean() }),
  },
})
