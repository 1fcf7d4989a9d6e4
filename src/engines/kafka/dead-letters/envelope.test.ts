import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { toErrorRecord } from '../../../job/error-record.ts'
import { buildEnvelope, type Failure, originalKey, originalValue } from './envelope.ts'
import { encodeEnvelope, readEnvelope } from './envelope-codec.ts'

class TonApiTimeoutException extends Error {
  override readonly name = 'TonApiTimeoutException'
}

const error = new TonApiTimeoutException('no answer from the TON API within 30 s')
error.stack = `${error.name}: ${error.message}\n${'    at frame (file.ts:1:1)\n'.repeat(100)}`

const failure = (given: Partial<Failure['record']> = {}): Failure => ({
  record: {
    topic: 'escrow.commands',
    partition: 3,
    offset: 12_345n,
    key: Buffer.from('deal_550e8400'),
    value: Buffer.from('{"deal":7,"amount":"12.50"}'),
    ...given,
  },
  error: toErrorRecord(error),
  starts: 6,
  group: 'payout-executor',
  workerType: 'payout-executor',
  workerInstance: 'payout-executor-1',
  firstFailureMs: Date.UTC(2026, 0, 15, 10, 30),
  lastFailureMs: Date.UTC(2026, 0, 15, 11, 5, 36),
  replays: 0,
})

const written = (one: Failure): Record<string, unknown> => JSON.parse(JSON.stringify(buildEnvelope(one)))

// D34 D35 D36 D37 D38 D39 D40 D42 D43 D44 D45 X149
test('the envelope has all fields with their values, and whose failure it was', () => {
  const { error_details, ...fields } = written(failure())
  assert.deepEqual(fields, {
    original_topic: 'escrow.commands',
    original_partition: 3,
    original_offset: 12_345,
    original_key: 'deal_550e8400',
    original_value: { deal: 7, amount: '12.50' },
    retry_count: 5,
    worker_instance: 'payout-executor-1',
    first_failure_at: '2026-01-15T10:30:00.000Z',
    last_failure_at: '2026-01-15T11:05:36.000Z',
    consumer_group: 'payout-executor',
    worker_type: 'payout-executor',
    replay_count: 0,
  })
  const { exception_class, message } = buildEnvelope(failure()).error_details
  assert.deepEqual(Object.keys(Object(error_details)), ['exception_class', 'message', 'stack_trace'])
  assert.equal(exception_class, 'TonApiTimeoutException')
  assert.equal(message, 'no answer from the TON API within 30 s')
})

// D41
test('of a stack the first 500 characters are kept', () => {
  const { stack_trace } = buildEnvelope(failure()).error_details
  assert.equal(stack_trace.length, 500)
  assert.equal(stack_trace.slice(0, 497), (error.stack ?? '').slice(0, 497))
  const raw = { ...toErrorRecord(error), stack: 'x'.repeat(2_000) }
  assert.equal(buildEnvelope({ ...failure(), error: raw }).error_details.stack_trace, 'x'.repeat(500))
  assert.equal(buildEnvelope({ ...failure(), error: { ...raw, stack: null } }).error_details.stack_trace, '')
})

// D42 D45
test('the first delivery is no retry, and a clock that goes back makes no last failure before the first', () => {
  const once = { ...failure(), starts: 1, lastFailureMs: 0 }
  const { retry_count, first_failure_at, last_failure_at } = buildEnvelope(once)
  assert.deepEqual([retry_count, last_failure_at], [0, first_failure_at])
})

// X164
test('a value that is no JSON is base64, and says so', () => {
  const bytes = Buffer.from([0xff, 0x00, 0x80])
  const { original_value, original_encoding } = buildEnvelope(failure({ value: bytes }))
  assert.deepEqual([original_value, original_encoding], [bytes.toString('base64'), 'base64'])
  assert.equal(buildEnvelope(failure({ value: Buffer.from('plain text') })).original_encoding, 'base64')
  assert.equal('original_encoding' in buildEnvelope(failure()), false)
})

const KEEPERS: readonly (Buffer | null)[] = [
  null,
  Buffer.from(''),
  Buffer.from('null'),
  Buffer.from('{"amount":100.50}'),
  Buffer.from('{ "a" : 1 }'),
  Buffer.from('{"id":12345678901234567890}'),
  Buffer.from('{"a":1,"a":2}'),
  Buffer.from(' {"a": [1.0, {"original_value": 2.0}] }\r\n'),
  Buffer.from('\t7'),
  Buffer.from('null '),
  Buffer.from('{"original_value":{"b":1.0},"original_text":"x"}'),
  Buffer.from('"\\\\\\" , } "  '),
  Buffer.from('"\\u00e9"'),
  Buffer.from('\ufeff{"a":1}'),
  Buffer.from('{"__proto__":{"a":1}}'),
  Buffer.from('['.repeat(100_000) + ']'.repeat(100_000)),
  Buffer.from('["]\\"",'.repeat(100_000) + '1'.concat(']'.repeat(100_000))),
  Buffer.from([0xc3, 0x28]),
]

// D38 D49 X164
test('every value and key comes back byte by byte, through JSON', () => {
  const roundTrip = (value: Buffer | null, key: Buffer | null): void => {
    const envelope = buildEnvelope(failure({ value, key }))
    // As it is written now, and as earlier versions wrote it.
    for (const text of [encodeEnvelope(envelope), JSON.stringify(envelope)]) {
      const read = readEnvelope(Buffer.from(text))
      assert.ok(read !== null)
      assert.deepEqual(originalValue(read), value)
      assert.deepEqual(originalKey(read), key)
    }
  }
  for (const value of KEEPERS) roundTrip(value, value)
  const bytes = fc.option(fc.uint8Array({ maxLength: 40 }).map((array) => Buffer.from(array)))
  const json = fc.json().map((text) => Buffer.from(text))
  const pretty = fc.json().map((text) => Buffer.from(` ${JSON.stringify(JSON.parse(text), null, 2)}\n`))
  fc.assert(fc.property(fc.oneof(bytes, json, pretty), bytes, roundTrip), { seed: 7, numRuns: 500 })
})

// D38
test('a letter has the value once, also where JSON written anew would differ, and every reader of JSON reads it', () => {
  const value = `${JSON.stringify({ amount: 1, text: 'y'.repeat(100_000) }, null, 2)}\n`.replace('1', '100.50')
  const text = encodeEnvelope(buildEnvelope(failure({ value: Buffer.from(value) })))
  assert.ok(text.length < value.length + 2_000, `${text.length} for a value of ${value.length}`)
  assert.deepEqual(JSON.parse(text).original_value, { amount: 100.5, text: 'y'.repeat(100_000) })
})

test('an envelope of another program keeps numbers that a double cannot', () => {
  const theirs =
    '{"original_topic": "a", "original_partition": 0, "original_offset": 1, "original_value": {"id": 12345678901234567890}}'
  const read = readEnvelope(Buffer.from(theirs))
  assert.ok(read !== null)
  assert.equal(originalValue(read)?.toString(), '{"id": 12345678901234567890}')
})

test('an envelope of another program is read with what it has', () => {
  const theirs = {
    original_topic: 'deal.deadlines',
    original_partition: '2',
    original_offset: 9,
    original_key: 17,
    original_value: { a: 1 },
    error_details: { exception_class: 'java.lang.IllegalStateException' },
    retry_count: 3,
    first_failure_at: '2026-01-15T10:30:00Z',
    last_failure_at: 1_768_473_000.5,
  }
  const read = readEnvelope(Buffer.from(JSON.stringify(theirs)))
  assert.ok(read !== null)
  const { original_partition, original_key, error_details, first_failure_at, last_failure_at, consumer_group } = read
  assert.deepEqual([original_partition, original_key, consumer_group], [2, '17', ''])
  assert.deepEqual(error_details, {
    exception_class: 'java.lang.IllegalStateException',
    message: '',
    stack_trace: '',
  })
  assert.deepEqual([first_failure_at, last_failure_at], ['2026-01-15T10:30:00.000Z', '2026-01-15T10:30:00.500Z'])
})

test('what does not say where it came from is no envelope', () => {
  const full = written(failure())
  const nonsense = ['', 'x', 'null', '[]', '7', '{}']
  for (const text of nonsense) assert.equal(readEnvelope(Buffer.from(text)), null, text)
  assert.equal(readEnvelope(null), null)
  for (const [field, value] of [
    ['original_topic', ''],
    ['original_partition', -1],
    ['original_offset', 1.5],
  ] as const) {
    assert.equal(readEnvelope(Buffer.from(JSON.stringify({ ...full, [field]: value }))), null, field)
  }
})

test('the reader never throws', () => {
  const keys = Object.keys(written(failure()))
  const fields = fc.dictionary(fc.constantFrom(...keys), fc.jsonValue())
  fc.assert(
    fc.property(fields, (some) => {
      readEnvelope(Buffer.from(JSON.stringify({ ...written(failure()), ...some })))
    }),
    { seed: 11, numRuns: 500 },
  )
})
