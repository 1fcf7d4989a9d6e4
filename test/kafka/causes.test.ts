/** Why a job died is kept when its worker is gone before that could be written. */
import assert from 'node:assert/strict'
import { before, type TestContext, test } from 'node:test'
import { openDesk } from '../../src/desk/desk.ts'
import { decodeProgress } from '../../src/engines/kafka/commit-metadata.ts'
import { createTopic, groupOffsets, type KafkaServer, kafkaServer, withAdmin } from '../servers/kafka.ts'
import { type DeskStage, stageDesk } from './desk-stage.ts'
import { boom, claimed, consume, eventually, openEngine, produce } from './kafka-fixtures.ts'

let server: KafkaServer
before(async () => {
  server = await kafkaServer()
})

async function stateOf({ group }: DeskStage) {
  const [committed] = await groupOffsets(server, group)
  return new Map(decodeProgress(0, committed?.metadata ?? null).retryStates).get(0)
}

/** What a worker that comes afterwards makes of it, and whether it ran the job. */
async function letterOf(t: TestContext, stage: DeskStage) {
  let runs = 0
  const mill = await stage.work(() => {
    runs += 1
  })
  t.after(() => mill.close())
  await eventually(async () => (await mill.counts())[stage.topic]?.dead === 1, 'the dead letter')
  const [letter] = await openDesk(mill).list({})
  return { runs, job: letter?.job }
}

test('a failure whose letter could not be written is in the letter of the next worker, which does not run the job', async (t) => {
  const stage = await stageDesk(t, server)
  const { topic, dlq } = stage
  await createTopic(server, dlq, 1, { 'max.message.bytes': '100' })
  await produce(server, [{ topic, key: 'a', value: '1' }])
  const engine = await openEngine(stage.url())
  const consumer = await consume(engine, topic)
  const [lease] = await claimed(consumer, 1)
  assert.ok(lease)
  const error = { ...boom, code: 'E_BANK', message: `the bank is away, and ${'x'.repeat(5_000)}` }
  await assert.rejects(consumer.settle([{ lease, outcome: { kind: 'dead', error } }]), /max\.message\.bytes/)
  // A crash from here on loses nothing of it.
  await eventually(async () => (await stateOf(stage))?.failure !== undefined, 'the commit of the failure')
  await engine.close()
  const configs = [{ name: 'max.message.bytes', configOperation: 0, value: '100000' }] as const
  await withAdmin(server, (admin) =>
    admin.incrementalAlterConfigs({ resources: [{ resourceType: 2, resourceName: dlq, configs: [...configs] }] }),
  )
  const { runs, job } = await letterOf(t, stage)
  assert.deepEqual([runs, job?.attempt, job?.error?.name, job?.error?.code], [0, 1, 'TypeError', 'E_BANK'])
  assert.match(job?.error?.message ?? '', /^the bank is away/)
})

test('a job whose only start was never settled dies with ERR_LEASE_EXPIRED, and is not run again', async (t) => {
  const stage = await stageDesk(t, server)
  const { topic } = stage
  await produce(server, [{ topic, key: 'a', value: '1' }])
  const engine = await openEngine(stage.url())
  await claimed(await consume(engine, topic), 1)
  await eventually(async () => (await stateOf(stage))?.starts === 1, 'the commit of the start')
  await engine.close()
  const { runs, job } = await letterOf(t, stage)
  assert.deepEqual([runs, job?.error?.code], [0, 'ERR_LEASE_EXPIRED'])
  assert.match(job?.error?.message ?? '', /start 1 of 1 was not settled/)
})
