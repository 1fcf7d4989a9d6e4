/** The desk of dead letters when the broker goes away, and when somebody dies while acting. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { connect, disconnect } from '../../src/engines/kafka/connection.ts'
import { claimRecord } from '../../src/engines/kafka/dead-letters/states.ts'
import { parseUrl, statesTopicOf } from '../../src/engines/kafka/options.ts'
import { EngineError } from '../../src/errors.ts'
import { systemClock } from '../../src/time/clock.ts'
import { createTopic, endOffsets, kafkaServer, startKafka } from '../servers/kafka.ts'
import { ann, stageDesk } from './desk-stage.ts'
import { eventually } from './kafka-fixtures.ts'

test('an unreachable broker is reported with a code, nothing is claimed meanwhile, and the same desk goes on', async (t) => {
  const server = await startKafka()
  t.after(() => server.end())
  const stage = await stageDesk(t, server)
  await stage.bury(['a'])
  const desk = await stage.openDesk()
  assert.equal((await desk.list({ topic: stage.topic })).letters.length, 1)
  await server.stop()
  const away = (error: unknown): boolean => error instanceof EngineError && error.code.startsWith('ERR_STORAGE_')
  await assert.rejects(desk.list({ topic: stage.topic }), away)
  await assert.rejects(desk.replay({ topic: stage.topic, offset: 0 }, ann), away)
  await server.start()
  const isBack = async (): Promise<boolean> => {
    try {
      return (await desk.list({ topic: stage.topic })).letters.length === 1
    } catch {
      return false
    }
  }
  await eventually(isBack, 'the list', 60_000)
  assert.equal((await desk.replay({ topic: stage.topic, offset: 0 }, ann)).letter.state, 'replayed')
  assert.deepEqual(await endOffsets(server, stage.topic), [2n])
})

// X148
test('who dies while acting leaves the letter claimed; an operator sees by whom, and releases it', async (t) => {
  const server = await kafkaServer()
  const stage = await stageDesk(t, server)
  await stage.bury(['a'])
  const desk = await stage.openDesk()
  const { topic } = stage
  const [letter] = (await desk.list({ topic })).letters
  assert.ok(letter)
  // What is left in the log of somebody who has claimed it and then was killed.
  const options = parseUrl(stage.url())
  const connection = await connect(options, systemClock)
  const bob = { who: 'bob', reason: 'the bank is back' }
  await connection.log.write([claimRecord({ letter: letter.id, claim: 'lost', atMs: Date.now() - 120_000, by: bob })])
  await disconnect(connection, options, systemClock)
  await assert.rejects(
    desk.replay({ topic, offset: 0 }, ann),
    /bob acts on letter .* now; if that process died, release it/,
  )
  assert.equal((await desk.replayAll({ topic }, ann)).seen, 0)
  const [claimed] = (await desk.list({ topic, state: 'claimed' })).letters
  assert.deepEqual([claimed?.id, claimed?.stateBy, await desk.pending({ topic })], [letter.id, bob, { pending: 1 }])
  assert.deepEqual(await desk.releaseAll({ topic }, ann), { released: 1 })
  await assert.rejects(desk.release({ topic, offset: 0 }, ann), /nothing to release/)
  await desk.replay({ topic, offset: 0 }, ann)
  assert.deepEqual(
    (await desk.audit()).entries.map(({ action, who }) => [action, who]),
    [
      ['replay', 'ann'],
      ['release', 'ann'],
    ],
  )
})

/** Of two acts: each writes a claim, then a state, a release and an entry of the audit. */
const ACTS_END = 8n

test('a broker that has compacted the states keeps every state and every entry of the audit', async (t) => {
  const server = await startKafka({ 'log.cleaner.backoff.ms': '200' })
  t.after(() => server.end())
  const stage = await stageDesk(t, server)
  const { topic } = stage
  const options = parseUrl(stage.url())
  const states = statesTopicOf(options)
  await createTopic(server, states, 1, {
    ...{ 'cleanup.policy': 'compact', 'segment.ms': '100', 'min.cleanable.dirty.ratio': '0.01' },
    'delete.retention.ms': '0',
  })
  await stage.bury(['a', 'b', 'c', 'd'])
  const desk = await stage.openDesk()
  await desk.replay({ topic, offset: 0 }, ann)
  await desk.discard({ topic, offset: 1 }, ann)
  assert.deepEqual(await endOffsets(server, states), [ACTS_END])
  const connection = await connect(options, systemClock)
  t.after(() => disconnect(connection, options, systemClock))
  const isCompacted = async (): Promise<boolean> => {
    // Only what is behind a later segment is compacted, so the log must go on.
    await connection.log.write([claimRecord({ letter: 'another', claim: 'c', atMs: 1, by: ann })])
    let count = 0
    for (let from = 0n; from < ACTS_END; ) {
      const records = await connection.log.readRange(states, 0, { from, to: ACTS_END, max: 1_000 })
      if (records.length === 0) break
      count += records.length
      from = (records.at(-1)?.offset ?? 0n) + 1n
    }
    // Each act has left its state and its entry; its claim is gone, and then the release of it.
    return count <= Number(ACTS_END) - 2
  }
  await eventually(isCompacted, 'the compaction', 60_000)
  await desk.discard({ topic, offset: 2 }, ann)
  const fresh = await stage.openDesk()
  const listed = (await fresh.list({ topic, state: 'every' })).letters.map(({ state }) => state)
  assert.deepEqual(listed, ['replayed', 'discarded', 'discarded', 'pending'])
  const { entries } = await fresh.audit()
  assert.deepEqual(
    entries.map(({ action, letter }) => [action, letter?.offset]),
    [
      ['discard', 2],
      ['discard', 1],
      ['replay', 0],
    ],
  )
})
