/** Ten webhooks of one event: eight are delivered at once, one later, and one after its receiver was repaired. */
import type { Desk } from '../../../src/index.ts'
import type { Webhooks } from '../../../workloads/webhooks/index.ts'
import { progressBar, step } from '../progress.ts'
import { counted, type Outcome, percentile } from './outcome.ts'
import { MISSING, PATHS, type Receiver, SLOW, SLOW_MS } from './receiver.ts'

interface Sending {
  readonly webhooks: Webhooks
  readonly receiver: Receiver
  readonly desk: Desk
  readonly signal: AbortSignal
}

const ORDER = { orderId: 7, total: '12.50' }

export async function sendWebhooks({ webhooks, receiver, desk, signal }: Sending): Promise<Outcome> {
  for (const path of PATHS) {
    const { secret } = await webhooks.endpoints.add({ url: `${receiver.origin}${path}`, events: ['order.*'] })
    receiver.trust(path, secret)
  }
  const { deliveries } = await webhooks.publish('order.paid', ORDER, { key: 'order-7' })
  const again = await webhooks.publish('order.paid', ORDER, { key: 'order-7' })
  step('published', `order.paid to ${deliveries.length} endpoints in one transaction`)
  const ids = deliveries.map(({ jobId }) => jobId)
  await counted(webhooks.mill, ids, progressBar('webhooks', ids.length, 'sent or given up'), signal)
  const letters = await desk.list({ type: 'webhook-dispatch' })
  for (const { job } of letters) step('dead', `${job.error?.message}`)
  receiver.repair()
  for (const { job } of letters) await desk.replay(job.id, { who: 'demo', reason: 'the receiver is repaired' })
  const replayed = letters.map(({ job }) => job.id)
  await counted(webhooks.mill, replayed, progressBar('replayed', replayed.length, 'dead letters'), signal)

  const attempts = await webhooks.deliveries()
  const latencies = attempts.filter(({ status }) => status === 'success').map(({ latencyMs }) => latencyMs)
  const received = PATHS.flatMap((path) => receiver.accepted.get(path) ?? [])
  const missed = receiver.accepted.get(MISSING) ?? []
  return {
    figures: [
      ['webhooks delivered', `${latencies.length} of ${deliveries.length}, in ${attempts.length} attempts`],
      ['their latency', `p50 ${percentile(latencies, 0.5)} ms, slowest ${Math.max(...latencies)} ms`],
    ],
    checks: [
      [received.length === PATHS.length, `${received.length} of ${PATHS.length} webhooks arrived, each once`],
      [receiver.forged === 0, `every signature was valid`],
      [Math.max(...latencies) >= SLOW_MS, `the receiver ${SLOW} took its ${SLOW_MS / 1_000} s and got one request`],
      [
        letters.length === 1 && missed.length === 1 && missed[0] === letters[0]?.job.id,
        `the one whose receiver was missing became a dead letter at once, and kept its delivery id when it was replayed`,
      ],
      [again.isDuplicate && again.deliveries.length === deliveries.length, 'publishing the order again sent nothing'],
    ],
  }
}
