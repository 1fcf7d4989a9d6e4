import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decodeProgress, METADATA_BYTES_MAX } from './commit-metadata.ts'
import { RANGES_MAX, RETRIES_MAX, Watermark, WINDOW_MAX } from './watermark.ts'

const NOW_MS = Date.UTC(2026, 10, 16)
const TOPIC_ID = '2f1c8a4e-0000-4000-8000-9b6f1e2d3c4b'

function readOf(count: number, from = 0): Watermark {
  const mark = new Watermark(from)
  for (let index = 0; index < count; index += 1) mark.read(from + index)
  return mark
}

// D33
test('the position is the first offset that is not settled, whatever was settled above it', () => {
  const mark = readOf(5)
  assert.equal(mark.position, 0)
  mark.finish(1)
  mark.finish(3)
  assert.equal(mark.position, 0)
  mark.finish(0)
  assert.equal(mark.position, 2)
  mark.finish(2)
  assert.equal(mark.position, 4)
  mark.finish(4)
  assert.equal(mark.position, 5)
})

test('a record is settled once, and only after it was read', () => {
  const mark = readOf(1)
  assert.equal(mark.finish(7), false)
  assert.equal(mark.finish(0), true)
  assert.equal(mark.finish(0), false)
  assert.equal(mark.position, 1)
  assert.throws(() => mark.read(0), RangeError)
})

test('offsets that do not exist are passed over', () => {
  const mark = new Watermark(10)
  mark.read(12)
  mark.readUpTo(20)
  assert.equal(mark.position, 12)
  mark.finish(12)
  assert.equal(mark.position, 20)
})

test('the next owner knows what was finished above the position and does not run it again', () => {
  const mark = readOf(100, 1_000)
  for (let offset = 1_001; offset < 1_100; offset += 3) mark.finish(offset)
  const next = new Watermark(mark.position, mark.encode())
  const again = Array.from({ length: 100 }, (_, index) => 1_000 + index).filter((offset) => next.read(offset))
  assert.deepEqual(
    again,
    Array.from({ length: 100 }, (_, index) => 1_000 + index).filter((offset) => (offset - 1_001) % 3 !== 0),
  )
  assert.equal(next.unsettled, again.length)
  for (const offset of again) next.finish(offset)
  assert.equal(next.position, 1_100)
})

// X153
test('the next owner knows how often each was started, when it is due and when it first failed', () => {
  const mark = readOf(4, 50)
  mark.start(50)
  mark.start(51)
  mark.defer(51, NOW_MS + 1_800_000, NOW_MS)
  for (let turn = 0; turn < 3; turn += 1) mark.start(52)
  mark.start(53)
  mark.release(53, 0)
  const next = new Watermark(mark.position, mark.encode())
  assert.deepEqual(next.retryStateOf(50), { starts: 1, dueMs: 0, firstFailureMs: null })
  assert.deepEqual(next.retryStateOf(51), { starts: 1, dueMs: NOW_MS + 1_800_000, firstFailureMs: NOW_MS })
  assert.deepEqual(next.retryStateOf(52), { starts: 3, dueMs: 0, firstFailureMs: null })
  assert.deepEqual(next.retryStateOf(53), { starts: 0, dueMs: 0, firstFailureMs: null })
  assert.equal(next.start(51), 2)
})

test('a later failure keeps the time of the first', () => {
  const mark = readOf(1)
  mark.start(0)
  mark.defer(0, NOW_MS + 5, NOW_MS)
  mark.start(0)
  mark.defer(0, NOW_MS + 99, NOW_MS + 50)
  assert.equal(mark.retryStateOf(0).firstFailureMs, NOW_MS)
})

test('the metadata of the worst full window fits, with all trials in it', () => {
  const mark = new Watermark(9_000_000_000)
  for (let index = 0; index < WINDOW_MAX; index += 1) mark.read(9_000_000_000 + index)
  for (let index = 1; index < WINDOW_MAX; index += 2) mark.finish(9_000_000_000 + index)
  for (let index = 0; index < WINDOW_MAX; index += 2) mark.start(9_000_000_000 + index)
  const failing = Array.from({ length: RETRIES_MAX }, (_, index) => 9_000_000_000 + WINDOW_MAX - 2 - index * 2)
  for (const offset of failing) {
    mark.start(offset)
    mark.defer(offset, NOW_MS + 1_800_000, NOW_MS)
  }
  assert.ok(mark.isFull)
  const metadata = mark.encode(TOPIC_ID)
  assert.ok(Buffer.byteLength(metadata) <= METADATA_BYTES_MAX, `${Buffer.byteLength(metadata)} bytes`)
  assert.equal(decodeProgress(mark.position, metadata).topicId, TOPIC_ID)
  const next = new Watermark(mark.position, metadata)
  for (const offset of failing) assert.equal(next.retryStateOf(offset).starts, 2)
})

test('what does not fit is left out, and what was started most often stays', () => {
  const mark = readOf(2_000)
  for (let index = 0; index < 2_000; index += 1) {
    mark.start(index)
    if (index === 1_999) for (let turn = 0; turn < 4; turn += 1) mark.start(index)
    mark.defer(index, NOW_MS, NOW_MS)
  }
  const metadata = mark.encode()
  assert.ok(Buffer.byteLength(metadata) <= METADATA_BYTES_MAX)
  assert.equal(new Watermark(0, metadata).retryStateOf(1_999).starts, 5)
})

test('one record that waits for long lets any number of others pass, and the next owner knows of all', () => {
  const mark = new Watermark(7)
  mark.read(7)
  mark.start(7)
  mark.defer(7, NOW_MS + 300_000, NOW_MS)
  for (let offset = 8; offset < 500_000; offset += 1) {
    mark.read(offset)
    mark.finish(offset)
  }
  assert.equal(mark.isFull, false)
  assert.equal(mark.position, 7)
  const metadata = mark.encode()
  assert.ok(metadata.length < 100, metadata)
  const next = new Watermark(7, metadata)
  const again: number[] = []
  for (let offset = 7; offset < 500_002; offset += 1) if (next.read(offset)) again.push(offset)
  assert.deepEqual(again, [7, 500_000, 500_001])
  assert.deepEqual(next.retryStateOf(7), { starts: 1, dueMs: NOW_MS + 300_000, firstFailureMs: NOW_MS })
  for (const offset of again) next.finish(offset)
  assert.equal(next.position, 500_002)
})

test('a key that waits with all that came behind it, in a window far wider than a bitmap, is told whole', () => {
  const mark = new Watermark(0)
  const ofKey = (offset: number): boolean => offset % 1_000 === 0
  const last = (RANGES_MAX - 1) * 1_000
  for (let offset = 0; offset <= last; offset += 1) {
    mark.read(offset)
    if (!ofKey(offset)) mark.finish(offset)
  }
  assert.equal(mark.isFull, false)
  const next = new Watermark(0, mark.encode())
  let again = 0
  for (let offset = 0; offset <= last; offset += 1) {
    if (!next.read(offset)) continue
    again += 1
    assert.ok(ofKey(offset), String(offset))
  }
  assert.equal(again, RANGES_MAX)
})

test('a window is full when it is wide and in too many pieces, or by its failures, and opens again', () => {
  const wide = readOf(WINDOW_MAX)
  for (let index = 1; index <= RANGES_MAX; index += 1) wide.finish(index * 2)
  assert.equal(wide.isFull, true)
  wide.finish(3)
  assert.equal(wide.isFull, false)
  const failing = readOf(RETRIES_MAX)
  for (let index = 0; index < RETRIES_MAX; index += 1) {
    failing.start(index)
    failing.defer(index, NOW_MS, NOW_MS)
  }
  assert.equal(failing.isFull, true)
  failing.finish(5)
  assert.equal(failing.isFull, false)
})

test('the next owner of more retries than a partition takes on reads them all, a bounded number at a time', () => {
  const count = RETRIES_MAX + 30
  const mark = readOf(count)
  for (let offset = 0; offset < count; offset += 1) {
    mark.start(offset)
    if (offset % 2 === 0) mark.defer(offset, NOW_MS, NOW_MS)
    else mark.release(offset, NOW_MS)
  }
  const next = new Watermark(mark.position, mark.encode())
  assert.equal(next.isFull, false, 'nothing was read, so nothing that could be settled would ever make room')
  for (let offset = 0; offset < RETRIES_MAX; offset += 1) next.read(offset)
  assert.equal(next.isFull, true)
  assert.equal(next.retryStateOf(0).starts, 1)
  for (let offset = RETRIES_MAX; offset < count; offset += 1) {
    next.finish(offset - RETRIES_MAX)
    assert.equal(next.isFull, false, String(offset))
    assert.equal(next.retryStateOf(offset).dueMs, NOW_MS)
    next.read(offset)
    assert.equal(next.isFull, true, String(offset))
  }
})

test('retries that are not in the log any more keep nothing back', () => {
  const mark = readOf(RETRIES_MAX * 2)
  for (let offset = 0; offset < RETRIES_MAX * 2; offset += 1) mark.release(offset, NOW_MS)
  const next = new Watermark(mark.position, mark.encode())
  next.readUpTo(RETRIES_MAX)
  for (let offset = RETRIES_MAX; offset < RETRIES_MAX * 2; offset += 1) {
    assert.equal(next.isFull, false, String(offset))
    next.read(offset)
    next.finish(offset)
  }
  assert.equal(next.position, RETRIES_MAX * 2)
})

test('the metadata names the topic that its offsets belong to, and says the rest with and without it', () => {
  const mark = readOf(3, 7)
  mark.start(8)
  mark.defer(8, NOW_MS + 5, NOW_MS)
  mark.finish(9)
  const [named, nameless] = [mark.encode(TOPIC_ID), mark.encode()]
  assert.equal(named, `${nameless},@${TOPIC_ID}`)
  assert.equal(decodeProgress(7, named).topicId, TOPIC_ID)
  assert.equal(decodeProgress(7, nameless).topicId, null)
  assert.deepEqual(new Map(decodeProgress(7, named).retryStates), new Map(decodeProgress(7, nameless).retryStates))
  assert.equal(new Watermark(0).encode(TOPIC_ID), `m2|||@${TOPIC_ID}`)
  assert.deepEqual([...decodeProgress(0, `m2|||@${TOPIC_ID}`).retryStates], [])
})

test('metadata of somebody else tells nothing', () => {
  for (const metadata of [
    null,
    '',
    'by hand',
    'm1|AA==|AA==|',
    'm2|',
    '{"d":1}',
    'm2|||zz,..,1.x',
    'm2|b|l|',
    'm2|x//8=|?|',
  ]) {
    const mark = new Watermark(5, metadata)
    assert.equal(mark.read(5), true, String(metadata))
    assert.equal(mark.retryStateOf(5).starts, 0, String(metadata))
  }
})

test('failures that could not be buried are told to the next owner, as many as fit', () => {
  const before = new Watermark(0)
  const failure = { name: 'TypeError', code: 'E_BANK', message: `nö, ${'x'.repeat(3_000)}`, stack: 'at here' }
  for (let offset = 0; offset < 40; offset += 1) {
    before.read(offset)
    before.start(offset)
    before.fail(offset, failure, 1_000)
  }
  const metadata = before.encode('topic-id')
  assert.ok(Buffer.byteLength(metadata) <= METADATA_BYTES_MAX, `${metadata.length} bytes`)
  const after = new Watermark(before.position, metadata)
  const { failure: told, starts, firstFailureMs } = after.retryStateOf(0)
  assert.deepEqual(
    [told?.name, told?.code, told?.stack, starts, firstFailureMs],
    ['TypeError', 'E_BANK', null, 1, 1_000],
  )
  assert.match(told?.message ?? '', /^nö, x+$/)
  assert.deepEqual([after.retryStateOf(39).starts, after.retryStateOf(39).failure], [1, undefined])
  assert.equal(decodeProgress(0, metadata).topicId, 'topic-id')
})
