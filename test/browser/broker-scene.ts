/** The escrow workers on their own broker, some of its workers behind. */
import type { TestContext } from 'node:test'
import { defineJob, open } from 'millrace'
import { eventually } from '../../conformance/process/child.ts'
import { ESCROW_WORKERS, escrowLagLimits, openTopicDesk } from '../../workloads/escrow/index.ts'
import { urlOf } from '../kafka/kafka-fixtures.ts'
import { createTopic, startKafka } from '../servers/kafka.ts'
import { LIMIT_MS } from './browser.ts'
import type { Serve, Served } from './served-dashboard.ts'

/** How far each is behind. */
const BEHIND: Readonly<Record<string, number>> = {
  'payout-executor': 12,
  'deal-timeout-worker': 64,
  'delivery-verifier': 3,
  'reconciliation-worker': 71,
}

export async function setBrokerScene(t: TestContext, serve: Serve): Promise<Served> {
  const broker = await startKafka()
  const workers = ESCROW_WORKERS.filter(({ worker }) => BEHIND[worker] !== undefined)
  for (const { topic } of workers) await createTopic(broker, topic)
  for (const { topic, group, worker } of workers) {
    const mill = await open(urlOf(broker, group))
    const job = defineJob({ type: topic, run: () => null })
    const running = await mill.work([job])
    await mill.enqueue(job, {})
    await eventually(async () => (await mill.counts())[topic]?.ready === 0, `${worker} has read`, LIMIT_MS)
    await running.stop()
    await mill.enqueueMany(
      job,
      Array.from({ length: BEHIND[worker] ?? 0 }, (_, n) => ({ n })),
    )
    await mill.close()
  }
  const url = urlOf(broker, 'payout-executor')
  const operator = await openTopicDesk(url, { groups: workers.map(({ group }) => group) })
  const store = {
    url,
    async remove() {
      await operator.close()
      await broker.end()
    },
  }
  return serve(t, { jobs: [], store, over: () => ({ topics: operator.watched(escrowLagLimits) }) })
}
