import { z } from 'zod'
import { routes } from './route.ts'
import { ByReason, reason, typeName } from './shapes.ts'

const params = z.strictObject({ type: typeName })

const Rate = z.object({ max: z.number(), perMs: z.number() })

/** What is left out is the definition's; null: no limit. */
const TypeLimits = z.object({ concurrency: z.number().nullable().optional(), limit: Rate.nullable().optional() })

const LimitOverride = TypeLimits.extend({ type: z.string(), who: z.string(), reason: z.string(), sinceMs: z.number() })

const whole = z.int().min(1)

export const TYPE_ROUTES = routes({
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
