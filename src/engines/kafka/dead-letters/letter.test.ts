import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ErrorRecord } from '../../../job/job.ts'
import { toJob } from '../job-record.ts'
import { dlqTopicOf, type LogRecord, type NewRecord, toDlqTopic } from '../record.ts'
import { DLT_HEADERS, isForAnotherGroup, REPLAY_HEADERS, readDltHeaders, readReplayHeaders } from './headers.ts'
import { readLetter, toDeadLetter } from './letter.ts'

const error: ErrorRecord = { name: 'PayoutFailed', code: null, message: 'refused', stack: 'PayoutFailed: refused' }
const FIRST_MS = Date.UTC(2026, 0, 1)

const record = (given: Partial<LogRecord> = {}): LogRecord => ({
  topic: 'escrow.commands',
  partition: 3,
  offset: 12_345n,
  key: Buffer.from('deal_1'),
  value: Buffer.from('{"amount":100.50}'),
  headers: new Map([['trace', Buffer.from('abc')]]),
  timestampMs: 1_767_225_600_123,
  ...given,
})

const die = (of: LogRecord, firstFailureMs = FIRST_MS, group = 'payout-executor'): NewRecord =>
  toDeadLetter({
    record: of,
    error,
    starts: 6,
    group,
    workerType: group,
    workerInstance: `${group}-1`,
    firstFailureMs,
    lastFailureMs: firstFailureMs + 1_000,
  })

const stored = (written: NewRecord, offset: bigint, timestampMs = FIRST_MS): LogRecord => ({
  ...written,
  partition: written.partition ?? 0,
  offset,
  timestampMs,
})

// D22 X166
test("a topic's dead letters are in {topic}.dlq, whichever way it is asked for", () => {
  assert.equal(dlqTopicOf('escrow.commands'), 'escrow.commands.dlq')
  assert.equal(toDlqTopic('escrow.commands'), 'escrow.commands.dlq')
  assert.equal(toDlqTopic('escrow.commands.dlq'), 'escrow.commands.dlq')
  assert.equal(die(record()).topic, 'escrow.commands.dlq')
})

// X166
test("headers are Spring's, encoded as it encodes them, beside the record's own", () => {
  const { headers } = die(record())
  const hex = Object.fromEntries([...headers].map(([name, bytes]) => [name, bytes?.toString('hex')]))
  assert.equal(hex['kafka_dlt-original-partition'], '00000003')
  assert.equal(hex['kafka_dlt-original-offset'], '0000000000003039')
  assert.equal(hex['kafka_dlt-original-timestamp'], '0000019b76daa87b')
  const text = (name: string): string | undefined => headers.get(name)?.toString()
  assert.equal(text('kafka_dlt-original-topic'), 'escrow.commands')
  assert.equal(text('kafka_dlt-original-consumer-group'), 'payout-executor')
  assert.equal(text('kafka_dlt-exception-fqcn'), 'PayoutFailed')
  assert.equal(text('kafka_dlt-exception-message'), 'refused')
  assert.equal(text('kafka_dlt-exception-stacktrace'), 'PayoutFailed: refused')
  assert.equal(text('trace'), 'abc')
})

test("Spring's headers are read back, also as digits, and nonsense is nothing", () => {
  const facts = readDltHeaders(die(record()).headers)
  assert.deepEqual([facts.partition, facts.offset, facts.timestampMs], [3, 12_345n, 1_767_225_600_123])
  const digits = readDltHeaders(
    new Map([
      [DLT_HEADERS.partition, Buffer.from('1234')],
      [DLT_HEADERS.offset, Buffer.from('12345678')],
    ]),
  )
  assert.deepEqual([digits.partition, digits.offset], [1_234, 12_345_678n])
  const nonsense = readDltHeaders(
    new Map([
      [DLT_HEADERS.partition, Buffer.from([0xff, 0xff, 0xff, 0xff])],
      [DLT_HEADERS.offset, Buffer.from('abc')],
      [DLT_HEADERS.topic, Buffer.from([0xff])],
    ]),
  )
  assert.deepEqual([nonsense.partition, nonsense.offset, nonsense.topic, nonsense.group], [null, null, null, null])
})

// D49 X149
test('a replay is the record as it was, in its partition, for the group that failed on it', () => {
  const letter = readLetter(stored(die(record()), 8n))
  const again = letter.replayed()
  assert.ok(again !== null)
  assert.deepEqual([again.topic, again.partition], ['escrow.commands', 3])
  assert.deepEqual([again.key?.toString(), again.value?.toString()], ['deal_1', '{"amount":100.50}'])
  assert.deepEqual(
    [...again.headers].map(([name]) => name).toSorted(),
    ['trace', ...Object.values(REPLAY_HEADERS)].toSorted(),
  )
  assert.equal(isForAnotherGroup(again.headers, 'payout-executor'), false)
  assert.equal(isForAnotherGroup(again.headers, 'refund-executor'), true)
  assert.equal(isForAnotherGroup(record().headers, 'refund-executor'), false)
})

test('a record that says nonsense about where it first stood keeps its id when it is replayed', () => {
  const first = record({ headers: new Map([[REPLAY_HEADERS.origin, Buffer.from('no/place/at all')]]) })
  const again = readLetter(stored(die(first), 8n)).replayed()
  assert.ok(again !== null)
  assert.equal(toJob(stored(again, 20_000n)).job.id, toJob(first).job.id)
})

// X151
test('history goes on through replays: count, first failure and where it first stood', () => {
  const first = readLetter(stored(die(record()), 8n)).replayed()
  assert.ok(first !== null)
  const second = readLetter(stored(die(stored(first, 20_000n), FIRST_MS + 86_400_000), 9n))
  assert.deepEqual(
    [second.envelope.replay_count, second.envelope.first_failure_at, second.envelope.original_offset],
    [1, '2026-01-01T00:00:00.000Z', 20_000],
  )
  const third = second.replayed()
  assert.ok(third !== null)
  const { count, origin, group } = readReplayHeaders(third.headers)
  assert.deepEqual([count, origin, group], [2, 'escrow.commands/3/12345', 'payout-executor'])
})

// X149
test('copies of one failure have one id, failures of two groups have two', () => {
  const [one, copy] = [readLetter(stored(die(record()), 8n)), readLetter(stored(die(record()), 9n))]
  const other = readLetter(stored(die(record(), FIRST_MS, 'refund-executor'), 10n))
  assert.equal(one.id, copy.id)
  assert.notEqual(one.id, other.id)
  assert.deepEqual(die(record()).key?.toString(), one.id)
})

// X166
test("Spring's own dead letter, the raw value with headers, is read and replayed", () => {
  const spring: LogRecord = {
    ...record(),
    topic: 'escrow.commands.dlq',
    partition: 0,
    offset: 4n,
    value: Buffer.from([1, 2, 3]),
    headers: die(record()).headers,
  }
  const letter = readLetter(spring)
  assert.equal(letter.envelope.original_topic, 'escrow.commands')
  assert.equal(letter.envelope.error_details.exception_class, 'PayoutFailed')
  assert.equal(letter.envelope.consumer_group, 'payout-executor')
  const again = letter.replayed()
  assert.deepEqual([again?.partition, again?.value], [3, Buffer.from([1, 2, 3])])
})

test('a record that says nothing of itself is shown but cannot be replayed', () => {
  const letter = readLetter({ ...record(), topic: 'x.dlq', headers: new Map(), value: Buffer.from('hm') })
  assert.equal(letter.replayed(), null)
  assert.equal(letter.envelope.original_value, Buffer.from('hm').toString('base64'))
  assert.deepEqual(letter.at, { topic: 'x.dlq', partition: 3, offset: 12_345n })
})

test('nonsense in the headers of a replay counts as nothing', () => {
  const facts = readReplayHeaders(
    new Map([
      [REPLAY_HEADERS.count, Buffer.from('-1')],
      [REPLAY_HEADERS.firstFailureAt, Buffer.from('soon')],
    ]),
  )
  assert.deepEqual(facts, { count: 0, firstFailureMs: null, group: null, origin: null })
})
