import { type Route, route } from '../../../src/http/index.ts'
import { omitUndefined } from '../../../src/job/known-options.ts'
import type { WebhookDelivery } from '../store/deliveries.ts'
import type { WebhookEndpoint } from '../store/endpoint.ts'
import type { Webhooks } from '../webhooks.ts'
import { WEBHOOK_ROUTES } from './contract.ts'

type Action = 'webhook-enable' | 'webhook-disable' | 'webhook-test' | 'webhook-redeliver'

/**
 * Routes for `createAdmin`, with the dashboard's page of webhooks. Every act is in the audit.
 *
 * @example
 * const admin = createAdmin(webhooks.mill, { routes: webhookRoutes(webhooks), pages: ['webhooks'] })
 */
export function webhookRoutes(webhooks: Webhooks): Readonly<Record<keyof typeof WEBHOOK_ROUTES, Route>> {
  const { endpoints, mill } = webhooks
  const note = (action: Action, subject: string, who: string, reason: string = action): Promise<void> =>
    mill.note({ who, reason, action, subject })
  return {
    listWebhooks: route(WEBHOOK_ROUTES.listWebhooks, async () => ({ webhooks: (await endpoints.list()).map(shown) })),
    listWebhookDeliveries: route(WEBHOOK_ROUTES.listWebhookDeliveries, async ({ query }) => {
      const deliveries = await webhooks.deliveries(omitUndefined(query))
      return { deliveries: deliveries.map(shownAttempt) }
    }),
    enableWebhook: route(WEBHOOK_ROUTES.enableWebhook, async ({ params: { id }, body }, { caller }) => {
      const webhook = shown(await endpoints.enable(id))
      await note('webhook-enable', id, caller.who, body.reason)
      return { webhook }
    }),
    disableWebhook: route(WEBHOOK_ROUTES.disableWebhook, async ({ params: { id }, body }, { caller }) => {
      const webhook = shown(await endpoints.disable(id, body.reason ?? `disabled by ${caller.who}`))
      await note('webhook-disable', id, caller.who, body.reason)
      return { webhook }
    }),
    testWebhook: route(WEBHOOK_ROUTES.testWebhook, async ({ params: { id }, body }, { caller }) => {
      const result = await webhooks.test(id)
      await note('webhook-test', id, caller.who, body.reason)
      return result
    }),
    redeliverWebhook: route(WEBHOOK_ROUTES.redeliverWebhook, async ({ params: { id }, body }, { caller }) => {
      const delivery = await webhooks.redeliver(id)
      await note('webhook-redeliver', id, caller.who, body.reason)
      return delivery
    }),
  }
}

function shown(endpoint: WebhookEndpoint) {
  const { url, tenant, lastDeliveredAt } = endpoint
  return {
    ...endpoint,
    origin: URL.parse(url)?.origin ?? 'not a URL',
    tenant: tenant === null ? null : [tenant.orgId, tenant.workspaceId ?? []].flat().join('/'),
    lastDeliveredAtMs: lastDeliveredAt?.getTime() ?? null,
  }
}

function shownAttempt(delivery: WebhookDelivery) {
  return { ...delivery, atMs: delivery.at.getTime() }
}
