import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ArrayLog } from '../../../test/fixtures/array-log.ts'
import { EngineError } from '../../errors.ts'
import { TestClock } from '../../testing/test-clock.ts'
import { decodeAudit, encodeAudit } from './dead-letters/audit.ts'
import { toDeadLetter } from './dead-letters/letter.ts'
import { GroupLetters } from './dead-letters/letter-index.ts'
import { claimRecord } from './dead-letters/states.ts'
import { TopicLetters } from './dead-letters/topic-letters.ts'
import { KafkaDeadLetters } from './dead-letters.ts'
import type { LogRecord } from './record.ts'

const by = { who: 'ann', reason: 'the bank is back' }
const DLQ = 'stage.pay.dlq'

function stage(group = 'payout-executor') {
  const clock = new TestClock()
  const log = new ArrayLog(clock, 1)
  const topics = async (): Promise<readonly string[]> => ['stage.pay']
  const prefix = 'stage.'
  const locator = new GroupLetters({ log, group, prefix, topics })
  const letters = new KafkaDeadLetters({ log, clock, group, prefix, locator })
  return {
    clock,
    log,
    letters,
    locator,
    topicLetters: new TopicLetters(log, { clock, prefix }),
    /** A record of the topic fails for the last time; answers the id of its job. */
    die(key: string, of = group): string {
      const record = log.append({
        ...{ topic: 'stage.pay', key: Buffer.from(key), value: Buffer.from(`"${key}"`), headers: new Map() },
      })
      log.append(letterOf(record, of))
      return `stage.pay:0:${record.offset}`
    },
  }
}

function letterOf(record: LogRecord, group: string) {
  return toDeadLetter({
    ...{ record, starts: 3, group, workerType: 'pay', workerInstance: `${group}-1` },
    error: { name: 'PayoutFailed', code: 'E_BANK', message: 'no', stack: null },
    ...{ firstFailureMs: record.timestampMs, lastFailureMs: record.timestampMs + 5 },
  })
}

const idsOf = async (letters: KafkaDeadLetters): Promise<readonly string[]> =>
  (await letters.list({ limit: 10 })).map(({ job }) => job.id)

test('a letter is shown as the job that it was, with its error', async () => {
  const { letters, die, clock } = stage()
  const id = die('a')
  const [letter] = await letters.list({ limit: 1 })
  assert.deepEqual(letter?.error, { name: 'PayoutFailed', code: 'E_BANK', message: 'no', stack: null })
  assert.partialDeepStrictEqual(letter?.job, {
    ...{ id, type: 'pay', payload: '"a"', key: 'a', state: 'dead_letter', attempt: 3, attempts: 3 },
    ...{ replays: 0, createdAtMs: clock.nowMs(), completedAtMs: clock.nowMs() + 5 },
  })
})

// X149
test("each group has its own letters; those that name no group are everybody's", async () => {
  const { letters, locator, log, die } = stage()
  const mine = die('a')
  die('b', 'refund-executor')
  log.append({ topic: DLQ, key: null, value: Buffer.from('whose?'), headers: new Map() })
  assert.deepEqual([...(await idsOf(letters))].sort(), [mine, `${DLQ}:0:2`].sort())
  assert.deepEqual(await locator.tally(['stage.pay']), new Map([['stage.pay', { died: 2, dead: 2 }]]))
  assert.deepEqual(await letters.requeue([`${DLQ}:0:2`], by), [false], 'nobody knows where it came from')
  assert.deepEqual(await letters.discard([`${DLQ}:0:2`], by), [true])
})

test('a discard that was undone stays undone when the states are compacted', async () => {
  const { letters, log, die } = stage()
  const id = die('a')
  assert.deepEqual(await letters.discard([id], by), [true])
  log.compact()
  assert.deepEqual(await letters.undiscard([id], by), [true])
  log.compact()
  assert.deepEqual(await idsOf(letters), [id])
  assert.deepEqual(await letters.requeue([id], by), [true])
  log.compact()
  assert.deepEqual(await idsOf(letters), [])
  assert.deepEqual(
    (await letters.audit({ limit: 10 })).map(({ action }) => action),
    ['replay', 'undo', 'discard'],
    'the audit is kept for ever',
  )
})

test('a discarded letter is removed by one of two, and not brought back by the other', async () => {
  const { letters, die } = stage()
  const id = die('a')
  await letters.discard([id], by)
  const answers = await Promise.all([letters.remove([id], by), letters.undiscard([id], by), letters.remove([id], by)])
  assert.equal(answers.flat().filter((isDone) => isDone).length, 1)
  assert.equal((await letters.audit({ limit: 10 })).length, 2)
})

test('a claim on a letter that is resolved has no effect', async () => {
  const { letters, log, die, topicLetters } = stage()
  const id = die('a')
  const [listed] = await topicLetters.list('stage.pay')
  await letters.discard([id], by)
  const letter = listed?.letter.id ?? ''
  await log.write([claimRecord({ letter, claim: 'slow', atMs: 1, by })])
  const book = await log.states()
  assert.deepEqual(
    [book.isHeld(letter, 'slow', ['pending']), book.isHeld(letter, 'slow', ['discarded'])],
    [false, true],
  )
})

test('a replay that may have been written is not repeated until an operator releases it', async () => {
  const { letters, topicLetters, log, die } = stage()
  const id = die('a')
  log.produceError = new Error('the broker is away')
  await assert.rejects(letters.requeue([id], by), /away/)
  log.produceError = null
  assert.deepEqual([await idsOf(letters), await letters.requeue([id], by)], [[id], [false]])
  assert.deepEqual(await letters.audit({ limit: 10 }), [])
  assert.equal(await topicLetters.release(await topicLetters.at({ topic: DLQ, offset: 0n }), by), true)
  assert.deepEqual(await letters.requeue([id], by), [true])
})

test('a letter whose topic is gone is not claimed', async () => {
  const { letters, log } = stage()
  const gone: LogRecord = {
    ...{ topic: 'stage.gone', partition: 0, offset: 7n, key: null, value: null, headers: new Map(), timestampMs: 1 },
  }
  log.append({ ...letterOf(gone, 'payout-executor'), topic: DLQ })
  await assert.rejects(letters.requeue(['stage.gone:0:7'], by), EngineError)
  assert.deepEqual(await letters.discard(['stage.gone:0:7'], by), [true], 'it was left claimed')
})

// D54
test('copies are one letter, and what was archived is gone', async () => {
  const { letters, locator, log, die } = stage()
  const first = die('a')
  const [copy] = log.recordsOf(DLQ)
  assert.ok(copy)
  die('b')
  log.append(copy)
  assert.equal((await idsOf(letters)).length, 2)
  await log.deleteBefore(DLQ, 0, 2n)
  assert.deepEqual(await idsOf(letters), [first], 'its copy is still there')
  assert.deepEqual(await locator.tally(['stage.pay']), new Map([['stage.pay', { died: 1, dead: 1 }]]))
})

test('entries of the audit are read back as they were written, and foreign records are none', () => {
  const entry = {
    ...({
      atMs: 5,
      action: 'replay',
      by,
      topic: 't',
      group: 'g',
      jobId: 'j',
      subject: null,
      letter: 't/0/1/g',
    } as const),
    ...{ at: { topic: 't.dlq', partition: 0, offset: 9_007_199_254_740_993n }, before: { replays: 0 }, after: null },
  }
  const { key, value } = encodeAudit(entry)
  assert.deepEqual(decodeAudit(key, value), entry)
  assert.notDeepEqual(encodeAudit(entry).key, key, 'no entry takes the place of another')
  for (const text of ['', '{}', 'null', '{"by":{"who":"a","reason":"b"},"atMs":1,"action":"steal"}'])
    assert.equal(decodeAudit(key, Buffer.from(text)), null, text)
  assert.equal(decodeAudit(Buffer.from('state x'), value), null)
  assert.equal(decodeAudit(key, null), null)
})
