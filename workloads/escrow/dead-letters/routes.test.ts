import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { toDeadLetter } from '../../../src/engines/kafka/dead-letters/letter.ts'
import { TopicLetters } from '../../../src/engines/kafka/dead-letters/topic-letters.ts'
import { systemClock } from '../../../src/time/clock.ts'
import { clientOf, stageOn } from '../../../test/fixtures/admin.ts'
import { ArrayLog } from '../../../test/fixtures/array-log.ts'
import { DLQ_ROUTES, dlqRoutes } from './routes.ts'
import { TopicDesk } from './topic-desk.ts'

async function start(t: TestContext, count = 3) {
  const log = new ArrayLog(systemClock, 1)
  const value = (n: number) => Buffer.from(JSON.stringify({ n, password: 'hidden' }))
  for (let n = 0; n < count; n += 1) {
    const record = log.append({ topic: 'deals', key: Buffer.from('k'), value: value(n), headers: new Map() })
    log.append(
      toDeadLetter({
        record,
        error: { name: 'Error', code: null, message: 'boom', stack: null },
        starts: 3,
        group: 'g',
        workerType: 'deals',
        workerInstance: 'deals-1',
        firstFailureMs: 1,
        lastFailureMs: 2,
      }),
    )
  }
  const letters = new TopicLetters(log, { clock: systemClock })
  const { raw } = await stageOn(t, 'memory:', { routes: dlqRoutes(new TopicDesk(letters)) })
  return { ...clientOf(raw, DLQ_ROUTES), raw, letters, log }
}

// D48
test('the list shows the envelopes of a topic without secrets', async (t) => {
  const { ask } = await start(t)
  const { letters } = await ask('listDlq', { params: { topic: 'deals.dlq' }, query: { limit: 2 } })
  assert.equal(letters.length, 2)
  const [first] = letters
  assert.deepEqual([first?.original_topic, first?.dlq_topic, first?.state], ['deals', 'deals.dlq', 'pending'])
  assert.deepEqual(first?.original_value, { n: 0, password: '[redacted]' })
  assert.doesNotMatch(JSON.stringify(letters), /hidden/)
})

// D49
test('one letter goes back to its topic; a dry run only looks', async (t) => {
  const { ask, send, letters } = await start(t)
  const body = { topic: 'deals.dlq', partition: 0, offset: '1', reason: 'mended' }
  const dry = await ask('replayDlq', { body: { ...body, dryRun: true } })
  assert.deepEqual([dry.done, dry.letter.dlq_offset, await letters.pending('deals')], [false, 1, 3])
  const { done } = await ask('replayDlq', { body })
  assert.deepEqual([done, await letters.pending('deals')], [true, 2])
  const again = await send('replayDlq', { body })
  assert.deepEqual([again.status, again.body.code], [409, 'ERR_STATE_TRANSITION'])
  for (const dryRun of [true, false]) {
    const none = await send('replayDlq', { body: { ...body, offset: 99, dryRun } })
    assert.deepEqual([none.status, none.body.code], [404, 'ERR_JOB_UNKNOWN'])
  }
})

// D50
test('all that is pending goes back', async (t) => {
  const { ask, letters } = await start(t)
  const query = { topic: 'deals.dlq' }
  const dry = await ask('replayAllDlq', { query: { ...query, dryRun: 'true' } })
  assert.deepEqual([dry.replayed, await letters.pending('deals')], [3, 3])
  assert.deepEqual(await ask('replayAllDlq', { query }), { seen: 3, replayed: 3, refused: {} })
  assert.equal(await letters.pending('deals'), 0)
})

// D51 D52
test('a discarded letter is no longer listed, and the act is audited', async (t) => {
  const { ask, log } = await start(t)
  const request = { params: { topic: 'deals.dlq', offset: '2' }, headers: { 'x-millrace-who': 'ann' } }
  assert.equal((await ask('discardDlq', { ...request, query: { reason: 'spam' } })).done, true)
  const { letters } = await ask('listDlq', { params: { topic: 'deals.dlq' } })
  assert.deepEqual(
    letters.map(({ dlq_offset }) => dlq_offset),
    [0, 1],
  )
  const acts = await log.acts()
  assert.deepEqual(
    acts.map(({ action, by, at }) => [action, by.who, by.reason, Number(at?.offset)]),
    [['discard', 'ann', 'spam', 2]],
  )
})

test('the routes are in the document, and other methods are refused', async (t) => {
  const { raw } = await start(t)
  const { paths } = JSON.parse(await (await raw('/openapi.json')).text())
  for (const { path, method } of Object.values(DLQ_ROUTES)) assert.ok(paths[path]?.[method] !== undefined, path)
  const refused = await raw('/internal/v1/dlq/replay', { method: 'PUT' })
  assert.deepEqual([refused.status, refused.headers.get('allow')], [405, 'GET, POST, HEAD, OPTIONS'])
})
