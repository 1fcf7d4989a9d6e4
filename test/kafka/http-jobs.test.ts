/** Records as jobs and pauses over the HTTP API, on a real broker. */
import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { defineJob, open } from 'millrace'
import { MemoryPresence } from '../../src/engine/memory-records.ts'
import { createAdmin } from '../../src/http/admin.ts'
import { ROUTES } from '../../src/http/contract/index.ts'
import { clientOf, ORIGIN, stageOn } from '../fixtures/admin.ts'
import { freshName, freshTopic, type KafkaServer, kafkaServer } from '../servers/kafka.ts'
import { consume, openEngine, urlOf } from './kafka-fixtures.ts'

let server: KafkaServer
before(async () => {
  server = await kafkaServer()
})

test('records are listed page by page and shown, and a worker with its partitions', async (t) => {
  const topic = await freshTopic(server, 'bills', 2)
  const url = urlOf(server, freshName('group'))
  const { ask, send, mill } = await stageOn(t, url)
  const receipts = await mill.enqueueMany(defineJob({ type: topic }), [1, 2, 3, 4, 5])
  const { facets } = await ask('showSession', {})
  assert.deepEqual(
    [facets.inspection, facets.listingByState, facets.presence, facets.pausing, facets.cancellation],
    [true, false, true, false, false],
  )
  const first = await ask('listJobs', { query: { type: topic, limit: 3 } })
  const second = await ask('listJobs', { query: { type: topic, limit: 3, cursor: first.next ?? '' } })
  assert.equal(second.next, null)
  const ids = [...first.items, ...second.items].map(({ id }) => id)
  assert.deepEqual(ids.toSorted(), receipts.map(({ id }) => id).toSorted())
  const searched = await ask('listJobs', { query: { search: ids[2] ?? '', limit: 3 } })
  assert.deepEqual(
    searched.items.map(({ id }) => id),
    [ids[2]],
  )
  const shown = await ask('showJob', { params: { id: ids[0] ?? '' } })
  assert.deepEqual(
    [shown.job.state, shown.history, shown.graph, shown.explanation.because],
    ['queued', [], [], 'no-worker'],
  )
  const refused = await send('listJobs', { query: { state: 'queued' } })
  assert.deepEqual([refused.status, refused.body.code], [501, 'ERR_UNSUPPORTED'])
  assert.match(refused.body.message ?? '', /cannot list records by the state 'queued'/)
  const unpaused = await send('pauseQueue', { params: { type: topic }, body: {} })
  assert.equal(unpaused.status, 501)
  assert.match(unpaused.body.message ?? '', /--presence redis:\/\//)
  const engine = await openEngine(url)
  t.after(() => engine.close())
  await consume(engine, topic)
  const { workers } = await ask('listWorkers', {})
  assert.deepEqual(
    workers.map(({ id, host, holds }) => [id, host, holds?.map(({ type, partition }) => [type, partition])]),
    [
      [
        'payout-executor-1',
        '127.0.0.1',
        [
          [topic, 0],
          [topic, 1],
        ],
      ],
    ],
  )
  assert.equal(
    workers[0]?.holds?.reduce((sum, { lag }) => sum + lag, 0),
    5,
  )
})

test('with a presence a type is paused and resumed, and the queue says so', async (t) => {
  const topic = await freshTopic(server, 'bills')
  const mill = await open(urlOf(server, freshName('group')), { presence: new MemoryPresence() })
  const admin = createAdmin(mill, { page: null, peer: () => '127.0.0.1' })
  t.after(async () => {
    await admin.close()
    await mill.close()
  })
  const { ask } = clientOf((path, init = {}) => admin.fetch(new Request(`${ORIGIN}${path}`, init)), ROUTES)
  assert.equal((await ask('showSession', {})).facets.pausing, true)
  await mill.enqueue(defineJob({ type: topic }), 1)
  const act = { params: { type: topic }, body: { reason: 'the provider is down' } }
  assert.deepEqual(await ask('pauseQueue', act), { type: topic, paused: true, changed: true })
  const paused = (await ask('listQueues', {})).queues.find(({ type }) => type === topic)
  assert.deepEqual([paused?.pause?.reason, paused?.ready], ['the provider is down', 1])
  assert.deepEqual((await ask('showOverview', {})).paused, [topic])
  assert.deepEqual(await ask('resumeQueue', act), { type: topic, paused: false, changed: true })
  assert.equal((await ask('listQueues', {})).queues.find(({ type }) => type === topic)?.pause, null)
})
