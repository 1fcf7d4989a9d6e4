/** The shipped rules of the escrow workers, from scrapes of seven workers on a real broker with heartbeats in a real Redis. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { defineJob } from '../../src/index.ts'
import { ESCROW_TOPICS, ESCROW_WORKERS } from '../../workloads/escrow/index.ts'
import { type EscrowScene, escrowScene } from './escrow-scene.ts'
import { skip } from './promtool.ts'

const LIMIT_MS = 600_000
const engine = 'kafka'
const ann = { who: 'ann', reason: 'tried' }
const labelsOf = (worker: string) => ({ engine, worker, worker_instance: `${worker}-1` })
const PAYOUT = 'payout-executor'
const REFUND = 'refund-executor'

/** So many records more of the topic. */
async function send(scene: EscrowScene, topic: string, payloads: readonly unknown[]): Promise<void> {
  await scene.find(PAYOUT).mill.enqueueMany(defineJob({ type: topic }), payloads)
}

test('each rule of the escrow workers fires and clears', { skip, timeout: LIMIT_MS }, async (t) => {
  const scene = await escrowScene(t)
  const [payout, refund] = [scene.find(PAYOUT), scene.find(REFUND)]
  await Promise.all([...scene.workers.values()].map((worker) => (worker === refund ? null : worker.start())))
  await scene.pass(30)
  await scene.expect({})

  await t.test('a worker that never was there', async () => {
    await scene.pass(60)
    await scene.expect({ WorkerAbsent: [{ worker: REFUND }] })
    await refund.start()
    await scene.pass(10)
    await scene.expect({})
  })

  await t.test('dead letters', async () => {
    await send(scene, 'escrow.commands', [PAYOUT])
    await send(scene, 'delivery.commands', ['post-scheduler'])
    await scene.untilBehind(() => 0)
    await scene.pass(10)
    await scene.expect({
      MillraceDeadLetters: [{ engine }],
      DLQFinancial: [{ engine, topic: 'escrow.commands.dlq' }],
      DLQNonFinancial: [{ engine, topic: 'delivery.commands.dlq' }],
    })
    for (const topic of ['escrow.commands.dlq', 'delivery.commands.dlq']) {
      const { letters } = await scene.desk.list({ topic })
      assert.equal(letters.length, 1)
      for (const { partition, offset } of letters) await scene.desk.discard({ topic, partition, offset }, ann)
    }
    await scene.pass(10)
    await scene.expect({})
  })

  await t.test('lag', async () => {
    const behind = (limit: 'warning' | 'critical') => (topic: string) =>
      (ESCROW_TOPICS.find((one) => one.topic === topic)?.lag[limit] ?? 0) + 1
    const topics = [...new Set(ESCROW_WORKERS.map(({ topic }) => topic))]
    const groups = ESCROW_WORKERS.map(({ group, topic }) => ({ engine, group, topic }))
    for (const worker of scene.workers.values()) worker.block()
    for (const topic of topics) await send(scene, topic, Array(behind('warning')(topic)).fill(''))
    await scene.untilBehind(behind('warning'))
    await scene.pass(10)
    await scene.expect({ ConsumerLagWarning: groups })
    for (const topic of topics)
      await send(scene, topic, Array(behind('critical')(topic) - behind('warning')(topic)).fill(''))
    await scene.untilBehind(behind('critical'))
    await scene.pass(10)
    await scene.expect({ ConsumerLagCritical: groups, MillraceQueueDepth: [{ engine }] })
    for (const worker of scene.workers.values()) worker.release()
    await scene.untilBehind(() => 0)
    await scene.pass(10)
    await scene.expect({})
  })

  await t.test('a worker that handles nothing, and takes long to stop', async () => {
    payout.block()
    await send(scene, 'escrow.commands', [''])
    await scene.pass(280)
    await scene.expect({})
    await scene.pass(40)
    await scene.expect({ WorkerStuckProcessing: [labelsOf(PAYOUT)] })
    const stopped = payout.signedOff()
    await scene.pass(120)
    await scene.expect({})
    await scene.pass(10)
    await scene.expect({ WorkerShutdownOverdue: [labelsOf(PAYOUT)] })
    payout.release()
    await stopped
    await scene.pass(10)
    await scene.expect({})
    await payout.start()
  })

  await t.test('a worker that is silent', async () => {
    await refund.fallSilent()
    await scene.pass(60)
    await scene.expect({})
    await scene.pass(10)
    await scene.expect({ WorkerHeartbeatMissing: [labelsOf(REFUND)] })
    await refund.signedOff()
    await refund.start()
    await scene.pass(10)
    await scene.expect({})
  })

  await t.test('heartbeats that cannot be read', async () => {
    await scene.redis.stop()
    await scene.passUnheard()
    await scene.expect({ WorkerPresenceUnreachable: [{ engine }] })
    await scene.redis.start()
    await scene.passUntilHeard()
    await scene.expect({})
  })

  for (const worker of scene.workers.values()) await worker.signedOff()
  await scene.judge()
})
