/** The HTTP API over a real broker: the dead-letter endpoints, and the desk that every engine has. */
import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { actuatorEndpoint } from '../../workloads/escrow/actuator.ts'
import { DLQ_ROUTES } from '../../workloads/escrow/dead-letters/routes.ts'
import { dlqRoutes, openTopicDesk } from '../../workloads/escrow/index.ts'
import { clientOf, stageOn } from '../fixtures/admin.ts'
import { endOffsets, type KafkaServer, kafkaServer } from '../servers/kafka.ts'
import { stageDesk } from './desk-stage.ts'
import { eventually } from './kafka-fixtures.ts'

let server: KafkaServer
before(async () => {
  server = await kafkaServer()
})

// D48 D49 D50 D51 D52 D56 D58
test('letters of a topic are listed, replayed and discarded over HTTP, and health says how far the group is', async (t) => {
  const stage = await stageDesk(t, server)
  const { topic, dlq, group } = stage
  await stage.bury(['a', 'b', 'c'])
  // The prefix keeps the topics of other tests out of its counts.
  const operator = await openTopicDesk(`${stage.url()}&prefix=${topic}`)
  t.after(() => operator.close())
  const { raw } = await stageOn(t, stage.url(), {
    topics: operator.watched(() => ({ warning: 100, critical: 500 })),
    healthEndpoints: { '/actuator/health': actuatorEndpoint() },
    routes: dlqRoutes(operator),
    // No worker of this group runs.
    health: { minWorkers: 0 },
  })
  const { ask, send } = clientOf(raw, DLQ_ROUTES)
  const { letters } = await ask('listDlq', { params: { topic: dlq } })
  assert.deepEqual(
    letters.map(({ original_key, original_topic, state }) => [original_key, original_topic, state]),
    ['a', 'b', 'c'].map((key) => [key, topic, 'pending']),
  )
  assert.equal((await ask('replayDlq', { body: { topic, offset: 0 } })).done, true)
  assert.equal((await send('replayDlq', { body: { topic, offset: 0 } })).status, 409)
  assert.equal((await send('replayDlq', { body: { topic, offset: 9 } })).status, 404)
  const params = { topic: dlq, offset: '1' }
  for (const path of [`${dlq}/1`, `${dlq}/1?reason=`, `${dlq}/1?reason=%20`]) {
    const answer = await raw(`/internal/v1/dlq/${path}`, { method: 'DELETE' })
    assert.equal(answer.status, 400)
    assert.match(await answer.text(), /ERR_REQUEST_INVALID.*reason/)
  }
  for (const [method, path] of [
    ['GET', 'no-such.dlq'],
    ['GET', 'no-such'],
    ['DELETE', 'no-such.dlq/1?reason=gone'],
    ['POST', 'replay-all?topic=no-such.dlq'],
  ]) {
    const answer = await raw(`/internal/v1/dlq/${path}`, { ...(method && { method }) })
    assert.deepEqual([path, answer.status], [path, 404])
  }
  assert.equal((await ask('discardDlq', { params, query: { reason: 'a test order' } })).done, true)
  assert.deepEqual(await operator.pendingByTopic(), [{ topic: dlq, count: 1 }])
  assert.equal((await ask('replayAllDlq', { query: { topic: dlq } })).replayed, 1)
  assert.deepEqual(await operator.pendingByTopic(), [{ topic: dlq, count: 0 }])
  assert.deepEqual(await endOffsets(server, topic), [5n])
  assert.deepEqual(await operator.lags(), [{ group, topic, lag: 2, delayed: 0 }])
  const { entries } = await operator.audit()
  assert.deepEqual(
    entries.map(({ action, letter }) => [action, letter?.topic, letter?.offset]),
    [
      ['replay', dlq, 2],
      ['discard', dlq, 1],
      ['replay', dlq, 0],
    ],
  )
  let health = await raw('/actuator/health')
  // A broker that takes more than a second to answer is said to be down, and this machine may be busy.
  const isWell = async (): Promise<boolean> => {
    health = await raw('/actuator/health')
    return health.status === 200
  }
  await eventually(isWell, 'its health', 30_000)
  assert.equal(health.headers.get('content-type')?.split(';')[0], 'application/json')
  assert.match(await health.text(), new RegExp(`"${group}`))
})
