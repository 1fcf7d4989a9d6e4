import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ArrayLog } from '../../../../test/fixtures/array-log.ts'
import { OptionError } from '../../../errors.ts'
import { TestClock } from '../../../testing/test-clock.ts'
import { dlqHttpStatus } from './answers.ts'
import { toDeadLetter } from './letter.ts'
import { claimRecord, releaseRecord, StateBook } from './states.ts'
import { TopicDesk, type TopicDeskOptions } from './topic-desk.ts'

const by = { who: 'ann', reason: 'the API is back' }
const DLQ = 'delivery.commands.dlq'

interface Stage {
  readonly clock: TestClock
  readonly log: ArrayLog
  readonly desk: TopicDesk
  /** A record of the topic fails for the last time; answers where its letter stands. */
  die(
    key: string,
    given?: { readonly replays?: number; readonly partition?: number; readonly topic?: string },
  ): {
    readonly partition: number
    readonly offset: bigint
  }
}

function stage(options: Omit<TopicDeskOptions, 'clock'> = {}): Stage {
  const clock = new TestClock()
  const log = new ArrayLog(clock)
  const desk = new TopicDesk(log, { ...options, clock })
  return {
    clock,
    log,
    desk,
    die(key, { replays = 0, partition = 0, topic = 'delivery.commands' } = {}) {
      const headers = new Map(replays > 0 ? [['x-dlq-replay-count', Buffer.from(String(replays))] as const] : [])
      const record = log.append({
        topic,
        partition,
        key: Buffer.from(key),
        value: Buffer.from(`{"key":"${key}"}`),
        headers,
      })
      const letter = toDeadLetter({
        record,
        error: { name: 'PostFailed', code: null, message: 'no', stack: null },
        starts: 4,
        group: 'post-scheduler',
        workerType: 'post-scheduler',
        workerInstance: 'post-scheduler-1',
        firstFailureMs: clock.nowMs(),
        lastFailureMs: clock.nowMs(),
      })
      return log.append({ ...letter, partition })
    },
  }
}

const keys = (listed: Awaited<ReturnType<TopicDesk['list']>>): readonly (string | null)[] =>
  listed.map(({ letter }) => letter.envelope.original_key)

// D48
test('letters are listed with their envelopes, page by page, over partitions', async () => {
  const { desk, die } = stage()
  for (const [index, key] of ['a', 'b', 'c', 'd'].entries()) die(key, { partition: index % 2 })
  assert.deepEqual(keys(await desk.list('delivery.commands')), ['a', 'c', 'b', 'd'])
  const page = await desk.list(DLQ, { limit: 3 })
  assert.deepEqual(keys(page), ['a', 'c', 'b'])
  const after = page.at(-1)?.letter.at
  assert.ok(after !== undefined)
  assert.deepEqual(keys(await desk.list(DLQ, { after })), ['d'])
  assert.deepEqual(await desk.list('nowhere'), [])
})

// D49 D68 X146 X148 X150
test('a replay writes the record to its topic, once; the log is untouched and the letter no longer pending', async () => {
  const told: string[] = []
  const { desk, log, die } = stage({ onReplayed: (topic) => told.push(topic) })
  const at = die('a')
  die('b')
  const answer = await desk.replay({ topic: DLQ, ...at }, { by })
  assert.equal(answer.done, true)
  const [, , again] = log.recordsOf('delivery.commands')
  assert.deepEqual([again?.key?.toString(), again?.value?.toString()], ['a', '{"key":"a"}'])
  assert.equal(again?.headers.get('x-dlq-target-group')?.toString(), 'post-scheduler')
  assert.equal(log.recordsOf(DLQ).length, 2)
  assert.equal(await desk.pending(DLQ), 1)
  assert.deepEqual(keys(await desk.list(DLQ)), ['b'])
  assert.deepEqual(keys(await desk.list(DLQ, { state: 'replayed' })), ['a'])
  const second = await desk.replay({ topic: DLQ, ...at }, { by })
  assert.equal(dlqHttpStatus(second), 409)
  assert.match(second.done ? '' : second.text, /was replayed by ann/)
  assert.equal(log.recordsOf('delivery.commands').length, 3)
  assert.deepEqual(told, [DLQ])
  const [entry, ...more] = await log.acts()
  assert.deepEqual([entry?.action, entry?.at?.topic, entry?.at?.offset, entry?.by, more], ['replay', DLQ, 0n, by, []])
})

// X148
test('of many who replay one letter at once, one does, also when the states are compacted meanwhile', async () => {
  const { desk, log, die } = stage()
  const at = die('a')
  const all = await Promise.all(Array.from({ length: 8 }, () => desk.replay({ topic: DLQ, ...at }, { by })))
  assert.equal(all.filter(({ done }) => done).length, 1)
  assert.equal(log.recordsOf('delivery.commands').length, 2)
  log.compact()
  assert.equal((await desk.replay({ topic: DLQ, ...at }, { by })).done, false)
  assert.deepEqual(keys(await desk.list(DLQ, { state: 'replayed' })), ['a'])
})

// X148
test('the first claim in the log has the letter; when it is released the next one has it', () => {
  const claim = (name: string) => claimRecord({ letter: 'l', claim: name, atMs: 1, by })
  const book = new StateBook([claim('one'), claim('two'), claim('one')])
  assert.equal(book.of('l').claim, 'one')
  book.apply(releaseRecord('l', 'one'))
  assert.equal(book.of('l').claim, 'two')
  book.apply(releaseRecord('l', 'two'))
  assert.equal(book.of('l').state, 'pending')
})

// X148
test('a claim that comes after the outcome changes nothing, also when the states were compacted', async () => {
  const { desk, log, clock, die } = stage()
  const at = die('a')
  const [listed] = await desk.list(DLQ)
  await desk.discard({ topic: DLQ, ...at }, { by })
  const letter = listed?.letter.id ?? ''
  await log.write([claimRecord({ letter, claim: 'slow', atMs: clock.nowMs(), by: { who: 'bob', reason: 'x' } })])
  log.compact()
  assert.equal((await log.states()).of(letter).state, 'discarded')
  await log.write([releaseRecord(letter, 'slow')])
  assert.equal((await log.states()).of(letter).state, 'discarded')
})

// D51 D52
test('a discarded letter is no longer listed, and the audit log says who and why', async () => {
  const { desk, log, die, clock } = stage()
  const { partition, offset } = die('a')
  const reason = { who: 'ann', reason: 'a test order' }
  assert.equal((await desk.discard({ topic: 'delivery.commands', offset }, { by: reason })).done, true)
  assert.deepEqual(await desk.list(DLQ), [])
  const [listed] = await desk.list(DLQ, { state: 'every' })
  const [entry, ...more] = await log.acts()
  assert.partialDeepStrictEqual(entry, {
    ...{ atMs: clock.nowMs(), action: 'discard', by: reason, letter: listed?.letter.id },
    ...{ topic: 'delivery.commands', group: 'post-scheduler', at: { topic: DLQ, partition, offset } },
  })
  assert.deepEqual([entry?.before.ended, entry?.after?.ended, more], [null, 'discarded', []])
  assert.equal(log.recordsOf('delivery.commands').length, 1)
})

// X147
test('an offset that several partitions have needs the partition; one that none has is not found', async () => {
  const { desk, die } = stage()
  die('a', { partition: 0 })
  die('b', { partition: 1 })
  const ambiguous = await desk.discard({ topic: DLQ, offset: 0 }, { by })
  assert.deepEqual([dlqHttpStatus(ambiguous), ambiguous.done ? '' : ambiguous.why], [409, 'ambiguous'])
  assert.equal((await desk.discard({ topic: DLQ, offset: 0, partition: 1 }, { by })).done, true)
  assert.deepEqual(keys(await desk.list(DLQ)), ['a'])
  assert.equal(dlqHttpStatus(await desk.discard({ topic: DLQ, offset: 9 }, { by })), 404)
  assert.equal(dlqHttpStatus(await desk.replay({ topic: 'nowhere', offset: 0 }, { by })), 404)
})

// X151
test('what was replayed three times is refused, unless forced', async () => {
  const { desk, log, die } = stage()
  const at = die('a', { replays: 3 })
  const refused = await desk.replay({ topic: DLQ, ...at }, { by })
  assert.equal(refused.done ? '' : refused.why, 'replayed-too-often')
  assert.equal(await desk.pending(DLQ), 1)
  assert.equal((await desk.replay({ topic: DLQ, ...at }, { by, force: true })).done, true)
  const again = log.recordsOf('delivery.commands').at(-1)
  assert.equal(again?.headers.get('x-dlq-replay-count')?.toString(), '4')
  const allowed = die('b', { replays: 2 })
  assert.equal((await desk.replay({ topic: DLQ, ...allowed }, { by })).done, true)
})

// D50
test('replaying all replays what is pending, each once, and says how far it is', async () => {
  const { desk, log, die } = stage()
  const first = die('a')
  die('b', { partition: 1 })
  die('c', { replays: 3 })
  die('d', { partition: 2 })
  die('e')
  await desk.discard({ topic: DLQ, ...first }, { by })
  const progress: number[] = []
  const outcome = await desk.replayAll(DLQ, { by, onProgress: ({ replayed }) => progress.push(replayed) })
  assert.deepEqual(outcome, { seen: 4, replayed: 3, refused: { 'replayed-too-often': 1 } })
  assert.deepEqual(progress.at(-1), 3)
  const replayed = log.recordsOf('delivery.commands').filter(({ headers }) => headers.get('x-dlq-target-group'))
  assert.deepEqual(replayed.map(({ key }) => key?.toString()).toSorted(), ['b', 'd', 'e'])
  assert.equal((await desk.replayAll(DLQ, { by })).replayed, 0)
})

// X150
test('a dry run changes nothing, and a limit is kept', async () => {
  const { desk, log, die } = stage()
  for (const key of ['a', 'b', 'c']) die(key)
  assert.deepEqual(await desk.replayAll(DLQ, { by, dryRun: true }), { seen: 3, replayed: 3, refused: {} })
  assert.equal(await desk.pending(DLQ), 3)
  assert.equal((await desk.replayAll(DLQ, { by, limit: 2 })).replayed, 2)
  assert.equal(await desk.pending(DLQ), 1)
  assert.equal((await log.acts()).length, 2)
  await assert.rejects(desk.replayAll(DLQ, { by, rate: 0 }), OptionError)
  await assert.rejects(desk.replayAll(DLQ, { by, limit: -1 }), OptionError)
})

test('a limit is kept over several batches', async () => {
  const { desk, clock, die } = stage()
  for (const key of ['a', 'b', 'c', 'd', 'e']) die(key)
  const running = desk.replayAll(DLQ, { by, rate: 20, limit: 3 })
  await clock.advance('1s')
  assert.equal((await running).replayed, 3)
  assert.equal(await desk.pending(DLQ), 2)
})

test('a rate is kept, and an abort is heard', async () => {
  const { desk, log, clock, die } = stage()
  for (let index = 0; index < 20; index += 1) die(`k${index}`)
  const abort = new AbortController()
  const running = desk.replayAll(DLQ, { by, rate: 2, signal: abort.signal })
  await clock.advance('4900ms')
  const replayed = log.recordsOf('delivery.commands').length - 20
  assert.equal(replayed, 10)
  abort.abort()
  const outcome = await running
  assert.equal(outcome.replayed, 10)
  assert.equal(await desk.pending(DLQ), 10)
})

test('what dies while all is replayed is not replayed by the same call', async () => {
  const { desk, die } = stage()
  for (let index = 0; index < 150; index += 1) die(`k${index}`)
  let [batches, outcome] = [0, 0]
  const onProgress = (): void => {
    die(`again${batches}`, { replays: 1 })
    batches += 1
  }
  outcome = (await desk.replayAll(DLQ, { by, onProgress })).replayed
  assert.deepEqual([batches, outcome], [2, 150])
  assert.equal(await desk.pending(DLQ), 2)
})

test('a replay whose writing failed is nobody else’s until it is released', async () => {
  const { desk, log, die } = stage()
  const at = die('a')
  log.produceError = new Error('the broker is away')
  await assert.rejects(desk.replay({ topic: DLQ, ...at }, { by }), /away/)
  log.produceError = null
  const [listed] = await desk.list(DLQ, { state: 'claimed' })
  assert.equal(listed?.state.by?.who, 'ann')
  assert.equal(await desk.pending(DLQ), 1)
  const refused = await desk.replay({ topic: DLQ, ...at }, { by })
  assert.match(refused.done ? '' : refused.text, /acts on letter/)
  assert.equal((await desk.release({ topic: DLQ, ...at }, { by })).done, true)
  assert.equal((await desk.release({ topic: DLQ, ...at }, { by })).done, false)
  assert.equal((await desk.replay({ topic: DLQ, ...at }, { by })).done, true)
  assert.deepEqual(
    (await log.acts()).map(({ action }) => action),
    ['replay', 'release'],
  )
})

test('what a broker that went away left claimed is released together, once it is old', async () => {
  const { desk, log, clock, die } = stage()
  for (const key of ['a', 'b', 'c']) die(key)
  log.produceError = new Error('the broker is away')
  await assert.rejects(desk.replayAll(DLQ, { by }), /away/)
  log.produceError = null
  assert.equal(await desk.releaseAll(DLQ, { by }), 0, 'somebody may still act')
  await clock.advance('1m')
  assert.equal(await desk.releaseAll(DLQ, { by }), 3)
  assert.equal((await desk.replayAll(DLQ, { by })).replayed, 3)
})

test('copies of one letter are one: listed, counted and replayed once', async () => {
  const { desk, log, die } = stage()
  die('a')
  const [copy] = log.recordsOf(DLQ)
  assert.ok(copy !== undefined)
  const at = log.append(copy)
  assert.equal(await desk.pending(DLQ), 1)
  assert.equal((await desk.replay({ topic: DLQ, partition: at.partition, offset: at.offset }, { by })).done, true)
  assert.equal(await desk.pending(DLQ), 0)
})

// D53
test('nothing is replayed unless an operator asks', async () => {
  const { desk, log, clock, die } = stage()
  die('a')
  await desk.list(DLQ)
  await clock.advance('1h')
  assert.equal(clock.waiting, 0)
  assert.equal(log.recordsOf('delivery.commands').length, 1)
  assert.equal(await desk.pending(DLQ), 1)
})
