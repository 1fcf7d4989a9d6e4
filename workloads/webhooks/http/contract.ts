/** The routes of the dashboard's page about webhooks, as data. */
import { z } from 'zod'

const id = z.string().min(1).max(128)
const params = z.strictObject({ id })
const body = z.strictObject({ reason: z.string().trim().min(1).max(500).optional() })

/** Without the secret and without the path of the URL, which is often a secret too. */
const Endpoint = z.object({
  id: z.string(),
  origin: z.string(),
  description: z.string().nullable(),
  events: z.array(z.string()),
  tenant: z.string().nullable(),
  isEnabled: z.boolean(),
  disabledReason: z.string().nullable(),
  maxFailures: z.number(),
  successCount: z.number(),
  failureCount: z.number(),
  avgLatencyMs: z.number(),
  lastDeliveredAtMs: z.number().nullable(),
})

const Attempt = z.object({
  deliveryId: z.string(),
  jobId: z.string(),
  webhookId: z.string(),
  event: z.string().nullable(),
  attempt: z.number(),
  status: z.enum(['success', 'failed']),
  statusCode: z.number().nullable(),
  latencyMs: z.number(),
  errorMessage: z.string().nullable(),
  isFinal: z.boolean(),
  atMs: z.number(),
})

export const WEBHOOK_ROUTES = {
  listWebhooks: {
    method: 'get',
    path: '/api/v1/webhooks',
    summary: 'Endpoints with their stats. Secrets and paths of URLs are left out.',
    role: 'viewer',
    answer: z.object({ webhooks: z.array(Endpoint) }),
  },
  listWebhookDeliveries: {
    method: 'get',
    path: '/api/v1/webhook-deliveries',
    summary: 'Attempts to deliver, the latest first.',
    role: 'viewer',
    query: z.strictObject({
      webhookId: id.optional(),
      status: z.enum(['success', 'failed']).optional(),
      limit: z.coerce.number().int().min(1).max(500).default(100),
    }),
    answer: z.object({ deliveries: z.array(Attempt) }),
  },
  enableWebhook: {
    method: 'post',
    path: '/api/v1/webhooks/{id}/enable',
    summary: 'Enables an endpoint; its failures so far no longer count.',
    role: 'operator',
    params,
    body,
    answer: z.object({ webhook: Endpoint }),
  },
  disableWebhook: {
    method: 'post',
    path: '/api/v1/webhooks/{id}/disable',
    summary: 'Disables an endpoint.',
    role: 'operator',
    params,
    body,
    answer: z.object({ webhook: Endpoint }),
  },
  testWebhook: {
    method: 'post',
    path: '/api/v1/webhooks/{id}/test',
    summary: 'Sends a signed webhook.test event now.',
    role: 'operator',
    params,
    body,
    answer: z.object({
      success: z.boolean(),
      statusCode: z.number().nullable(),
      latencyMs: z.number(),
      error: z.string().nullable(),
    }),
  },
  redeliverWebhook: {
    method: 'post',
    path: '/api/v1/webhook-deliveries/{id}/redeliver',
    summary: 'Enqueues a delivery again with the same delivery id.',
    role: 'operator',
    params,
    body,
    answer: z.object({ deliveryId: z.string(), jobId: z.string() }),
  },
} as const

export type WebhookRoutes = typeof WEBHOOK_ROUTES
