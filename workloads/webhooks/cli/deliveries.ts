/** `millrace webhooks deliveries` and `redeliver`. */
import type { CommandCall } from '../../../src/cli/extensions.ts'
import { omitUndefined } from '../../../src/job/known-options.ts'
import type { WebhookDelivery } from '../store/deliveries.ts'
import { using } from './open.ts'

export async function listAttempts(call: CommandCall): Promise<void> {
  const { status, delivery, limit } = call.options
  const filter = omitUndefined({
    webhookId: call.arguments[0],
    status: status === 'success' || status === 'failed' ? (status as 'success' | 'failed') : undefined,
    deliveryId: typeof delivery === 'string' ? delivery : undefined,
    limit: Number(limit),
  })
  const deliveries = await using(call, (webhooks) => webhooks.deliveries(filter))
  if (call.json) for (const one of deliveries) call.terminal.print(JSON.stringify(one))
  else if (deliveries.length === 0) call.terminal.print('No deliveries.')
  else printAttempts(call, deliveries)
}

export function printAttempts(call: CommandCall, deliveries: readonly WebhookDelivery[]): void {
  call.table(
    [
      ...[{ title: 'AT' }, { title: 'DELIVERY' }, { title: 'WEBHOOK' }, { title: 'EVENT' }, { title: 'STATUS' }],
      ...([
        { title: 'CODE', align: 'right' },
        { title: 'MS', align: 'right' },
      ] as const),
      ...([{ title: 'ATTEMPT', align: 'right' }, { title: 'ERROR' }] as const),
    ],
    deliveries.map((one) => [
      ...[one.at.toISOString(), one.deliveryId, one.webhookId, one.event ?? '-', one.status],
      ...[String(one.statusCode ?? '-'), String(one.latencyMs), String(one.attempt), one.errorMessage ?? '-'],
    ]),
  )
}

export async function redeliverOne(call: CommandCall): Promise<void> {
  const [deliveryId = ''] = call.arguments
  const delivery = await using(call, (webhooks) => webhooks.redeliver(deliveryId))
  const { jobId, webhookId } = delivery
  if (call.json) call.terminal.print(JSON.stringify(delivery))
  else call.terminal.print(`Enqueued delivery ${delivery.deliveryId} to ${webhookId} again as job ${jobId}.`)
}
