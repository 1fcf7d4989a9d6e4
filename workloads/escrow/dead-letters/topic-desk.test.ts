import assert from 'node:assert/strict'
import { test } from 'node:test'
import { claimRecord, releaseRecord } from '../../../src/engines/kafka/dead-letters/states.ts'
import { ann, at, DLQ, keys, pendingIn, refused, stageDesk } from '../../../test/fixtures/topic-desk.ts'

// D48
test('letters are listed with their envelopes, page by page, over partitions', async () => {
  const { desk, die } = stageDesk()
  for (const [index, key] of ['a', 'b', 'c', 'd'].entries()) die(key, { partition: index % 2 })
  assert.deepEqual(keys(await desk.list({ topic: 'delivery.commands' })), ['a', 'c', 'b', 'd'])
  for (const limit of [0, -1, Number.NaN]) await assert.rejects(desk.audit({ limit }), { code: 'ERR_OPTION_INVALID' })
  const page = await desk.list({ topic: DLQ, limit: 3 })
  assert.deepEqual(keys(page), ['a', 'c', 'b'])
  const after = page.letters.at(-1)
  assert.ok(after !== undefined)
  assert.deepEqual(keys(await desk.list({ topic: DLQ, after })), ['d'])
  await assert.rejects(desk.list({ topic: 'nowhere' }), refused('ERR_JOB_UNKNOWN'))
})

// D49 D68 X146 X148 X150
test('a replay writes the record to its topic, once; the log is untouched and the letter no longer pending', async () => {
  const told: string[] = []
  const { desk, log, die } = stageDesk({ onReplayed: (topic) => told.push(topic) })
  const place = die('a')
  die('b')
  const answer = await desk.replay({ topic: DLQ, ...place }, ann)
  assert.equal(answer.done, true)
  const [, , again] = log.recordsOf('delivery.commands')
  assert.deepEqual([again?.key?.toString(), again?.value?.toString()], ['a', '{"key":"a"}'])
  assert.equal(again?.headers.get('x-dlq-target-group')?.toString(), 'post-scheduler')
  assert.equal(log.recordsOf(DLQ).length, 2)
  assert.equal(await pendingIn(desk), 1)
  assert.deepEqual(keys(await desk.list({ topic: DLQ })), ['b'])
  assert.deepEqual(keys(await desk.list({ topic: DLQ, state: 'replayed' })), ['a'])
  await assert.rejects(
    desk.replay({ topic: DLQ, ...place }, ann),
    refused('ERR_STATE_TRANSITION', /was replayed by ann/),
  )
  assert.equal(log.recordsOf('delivery.commands').length, 3)
  assert.deepEqual(told, [DLQ])
  const [entry, ...more] = await log.acts()
  assert.deepEqual([entry?.action, entry?.at?.topic, entry?.at?.offset, entry?.by, more], ['replay', DLQ, 0n, ann, []])
})

// X148
test('of many who replay one letter at once, one does, also when the states are compacted meanwhile', async () => {
  const { desk, log, die } = stageDesk()
  const place = die('a')
  const all = await Promise.allSettled(Array.from({ length: 8 }, () => desk.replay({ topic: DLQ, ...place }, ann)))
  assert.equal(all.filter(({ status }) => status === 'fulfilled').length, 1)
  assert.equal(log.recordsOf('delivery.commands').length, 2)
  log.compact()
  await assert.rejects(desk.replay({ topic: DLQ, ...place }, ann), refused('ERR_STATE_TRANSITION'))
  assert.deepEqual(keys(await desk.list({ topic: DLQ, state: 'replayed' })), ['a'])
})

// X148
test('a claim that comes after the outcome changes nothing, also when the states were compacted', async () => {
  const { desk, log, clock, die } = stageDesk()
  const place = die('a')
  const [listed] = (await desk.list({ topic: DLQ })).letters
  await desk.discard({ topic: DLQ, ...place }, ann)
  const letter = listed?.id ?? ''
  await log.write([claimRecord({ letter, claim: 'slow', atMs: clock.nowMs(), by: { who: 'bob', reason: 'x' } })])
  log.compact()
  assert.equal((await log.states()).of(letter).state, 'discarded')
  await log.write([releaseRecord(letter, 'slow')])
  assert.equal((await log.states()).of(letter).state, 'discarded')
})

// D51 D52
test('a discarded letter is no longer listed, and the audit log says who and why', async () => {
  const { desk, log, die, clock } = stageDesk()
  const { partition, offset } = die('a')
  const reason = { who: 'ann', reason: 'a test order' }
  assert.equal((await desk.discard({ topic: 'delivery.commands', offset }, reason)).done, true)
  assert.deepEqual(await desk.list({ topic: DLQ }), { letters: [] })
  const [listed] = (await desk.list({ topic: DLQ, state: 'every' })).letters
  const [entry, ...more] = await log.acts()
  assert.partialDeepStrictEqual(entry, {
    ...{ atMs: clock.nowMs(), action: 'discard', by: reason, letter: listed?.id },
    ...{ topic: 'delivery.commands', group: 'post-scheduler', at: { topic: DLQ, partition, offset: BigInt(offset) } },
  })
  assert.deepEqual([entry?.before.state, entry?.after?.state, more], ['dead_letter', 'discarded', []])
  assert.equal(log.recordsOf('delivery.commands').length, 1)
})

// X147
test('an offset that several partitions have needs the partition; one that none has is not found', async () => {
  const { desk, die } = stageDesk()
  die('a', { partition: 0 })
  die('b', { partition: 1 })
  const ambiguous = refused('ERR_DESK_REFUSED', /2 partitions have a letter/)
  await assert.rejects(desk.discard({ topic: DLQ, offset: 0 }, ann), ambiguous)
  assert.equal((await desk.discard({ topic: DLQ, offset: 0, partition: 1 }, ann)).done, true)
  assert.deepEqual(keys(await desk.list({ topic: DLQ })), ['a'])
  await assert.rejects(desk.discard({ topic: DLQ, offset: 9 }, ann), refused('ERR_JOB_UNKNOWN'))
  await assert.rejects(desk.replay({ topic: 'nowhere', offset: 0 }, ann), refused('ERR_JOB_UNKNOWN'))
})

// X151
test('what was replayed three times is refused, unless forced', async () => {
  const { desk, log, die } = stageDesk()
  const place = die('a', { replays: 3 })
  const tooOften = refused('ERR_DESK_REFUSED', /was replayed 3 times/)
  await assert.rejects(desk.replay({ topic: DLQ, ...place }, ann), tooOften)
  assert.equal(await pendingIn(desk), 1)
  assert.equal((await desk.replay({ topic: DLQ, ...place, force: true }, ann)).done, true)
  const again = log.recordsOf('delivery.commands').at(-1)
  assert.equal(again?.headers.get('x-dlq-replay-count')?.toString(), '4')
  const allowed = die('b', { replays: 2 })
  assert.equal((await desk.replay({ topic: DLQ, ...allowed }, ann)).done, true)
})

test('a replay that could not be written keeps its claim until it is released', async () => {
  const { desk, log, die } = stageDesk()
  const place = die('a')
  log.produceError = new Error('the broker is away')
  await assert.rejects(desk.replay({ topic: DLQ, ...place }, ann), /away/)
  log.produceError = null
  const [listed] = (await desk.list({ topic: DLQ, state: 'claimed' })).letters
  assert.equal(listed?.stateBy?.who, 'ann')
  assert.equal(await pendingIn(desk), 1)
  const claimed = refused('ERR_STATE_TRANSITION', /acts on letter/)
  await assert.rejects(desk.replay({ topic: DLQ, ...place }, ann), claimed)
  assert.equal((await desk.release({ topic: DLQ, ...place }, ann)).done, true)
  await assert.rejects(desk.release({ topic: DLQ, ...place }, ann), refused('ERR_STATE_TRANSITION'))
  assert.equal((await desk.replay({ topic: DLQ, ...place }, ann)).done, true)
  assert.deepEqual(
    (await log.acts()).map(({ action }) => action),
    ['replay', 'release'],
  )
})

test('claims that an outage left behind are released together once they are old', async () => {
  const { desk, log, clock, die } = stageDesk()
  for (const key of ['a', 'b', 'c']) die(key)
  log.produceError = new Error('the broker is away')
  await assert.rejects(desk.replayAll({ topic: DLQ }, ann), /away/)
  log.produceError = null
  assert.deepEqual(await desk.releaseAll({ topic: DLQ }, ann), { released: 0 }, 'the claims are too young')
  await clock.advance('1m')
  assert.deepEqual(await desk.releaseAll({ topic: DLQ }, ann), { released: 3 })
  assert.equal((await desk.replayAll({ topic: DLQ }, ann)).replayed, 3)
})

test('copies of one letter are one: listed, counted and replayed once', async () => {
  const { desk, log, die } = stageDesk()
  die('a')
  const [copy] = log.recordsOf(DLQ)
  assert.ok(copy !== undefined)
  const place = at(log.append(copy))
  assert.equal(await pendingIn(desk), 1)
  assert.equal((await desk.replay({ topic: DLQ, ...place }, ann)).done, true)
  assert.equal(await pendingIn(desk), 0)
})

// D53
test('nothing is replayed unless an operator asks', async () => {
  const { desk, log, clock, die } = stageDesk()
  die('a')
  await desk.list({ topic: DLQ })
  await clock.advance('1h')
  assert.equal(clock.waiting, 0)
  assert.equal(log.recordsOf('delivery.commands').length, 1)
  assert.equal(await pendingIn(desk), 1)
})
