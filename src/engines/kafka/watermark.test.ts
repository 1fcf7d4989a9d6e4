import assert from 'node:assert/strict'
import { test } from 'node:test'
import { METADATA_BYTES_MAX } from './progress.ts'
import { PIECES_MAX, TRIALS_MAX, Watermark, WINDOW_MAX } from './watermark.ts'

const NOW_MS = Date.UTC(2026, 10, 16)

function readOf(count: number, from = 0n): Watermark {
  const mark = new Watermark(from)
  for (let index = 0; index < count; index += 1) mark.read(from + BigInt(index))
  return mark
}

// D33
test('the position is the first offset that is not settled, whatever was settled above it', () => {
  const mark = readOf(5)
  assert.equal(mark.position, 0n)
  mark.finish(1n)
  mark.finish(3n)
  assert.equal(mark.position, 0n)
  mark.finish(0n)
  assert.equal(mark.position, 2n)
  mark.finish(2n)
  assert.equal(mark.position, 4n)
  mark.finish(4n)
  assert.equal(mark.position, 5n)
})

test('a record is settled once, and only after it was read', () => {
  const mark = readOf(1)
  assert.equal(mark.finish(7n), false)
  assert.equal(mark.finish(0n), true)
  assert.equal(mark.finish(0n), false)
  assert.equal(mark.position, 1n)
  assert.throws(() => mark.read(0n), RangeError)
})

test('offsets that do not exist are passed over', () => {
  const mark = new Watermark(10n)
  mark.read(12n)
  mark.readUpTo(20n)
  assert.equal(mark.position, 12n)
  mark.finish(12n)
  assert.equal(mark.position, 20n)
})

test('the next owner knows what was finished above the position and does not run it again', () => {
  const mark = readOf(100, 1_000n)
  for (let offset = 1_001n; offset < 1_100n; offset += 3n) mark.finish(offset)
  const next = new Watermark(mark.position, mark.encode())
  const again = Array.from({ length: 100 }, (_, index) => 1_000n + BigInt(index)).filter((offset) => next.read(offset))
  assert.deepEqual(
    again,
    Array.from({ length: 100 }, (_, index) => 1_000n + BigInt(index)).filter((offset) => (offset - 1_001n) % 3n !== 0n),
  )
  assert.equal(next.unsettled, again.length)
  for (const offset of again) next.finish(offset)
  assert.equal(next.position, 1_100n)
})

// X153
test('the next owner knows how often each was started, when it is due and when it first failed', () => {
  const mark = readOf(4, 50n)
  mark.start(50n)
  mark.start(51n)
  mark.defer(51n, NOW_MS + 1_800_000, NOW_MS)
  for (let turn = 0; turn < 3; turn += 1) mark.start(52n)
  mark.start(53n)
  mark.release(53n, 0)
  const next = new Watermark(mark.position, mark.encode())
  assert.deepEqual(next.trialOf(50n), { starts: 1, dueMs: 0, firstFailureMs: null })
  assert.deepEqual(next.trialOf(51n), { starts: 1, dueMs: NOW_MS + 1_800_000, firstFailureMs: NOW_MS })
  assert.deepEqual(next.trialOf(52n), { starts: 3, dueMs: 0, firstFailureMs: null })
  assert.deepEqual(next.trialOf(53n), { starts: 0, dueMs: 0, firstFailureMs: null })
  assert.equal(next.start(51n), 2)
})

test('a later failure keeps the time of the first', () => {
  const mark = readOf(1)
  mark.start(0n)
  mark.defer(0n, NOW_MS + 5, NOW_MS)
  mark.start(0n)
  mark.defer(0n, NOW_MS + 99, NOW_MS + 50)
  assert.equal(mark.trialOf(0n).firstFailureMs, NOW_MS)
})

test('the metadata of the worst full window fits, with all trials in it', () => {
  const mark = new Watermark(9_000_000_000n)
  for (let index = 0; index < WINDOW_MAX; index += 1) mark.read(9_000_000_000n + BigInt(index))
  for (let index = 1; index < WINDOW_MAX; index += 2) mark.finish(9_000_000_000n + BigInt(index))
  for (let index = 0; index < WINDOW_MAX; index += 2) mark.start(9_000_000_000n + BigInt(index))
  const failing = Array.from({ length: TRIALS_MAX }, (_, index) => 9_000_000_000n + BigInt(WINDOW_MAX - 2 - index * 2))
  for (const offset of failing) {
    mark.start(offset)
    mark.defer(offset, NOW_MS + 1_800_000, NOW_MS)
  }
  assert.ok(mark.isFull)
  const metadata = mark.encode()
  assert.ok(Buffer.byteLength(metadata) <= METADATA_BYTES_MAX, `${Buffer.byteLength(metadata)} bytes`)
  const next = new Watermark(mark.position, metadata)
  for (const offset of failing) assert.equal(next.trialOf(offset).starts, 2)
})

test('what does not fit is left out, and what was started most often stays', () => {
  const mark = readOf(2_000)
  for (let index = 0; index < 2_000; index += 1) {
    mark.start(BigInt(index))
    if (index === 1_999) for (let turn = 0; turn < 4; turn += 1) mark.start(BigInt(index))
    mark.defer(BigInt(index), NOW_MS, NOW_MS)
  }
  const metadata = mark.encode()
  assert.ok(Buffer.byteLength(metadata) <= METADATA_BYTES_MAX)
  assert.equal(new Watermark(0n, metadata).trialOf(1_999n).starts, 5)
})

test('one record that waits for long lets any number of others pass, and the next owner knows of all', () => {
  const mark = new Watermark(7n)
  mark.read(7n)
  mark.start(7n)
  mark.defer(7n, NOW_MS + 300_000, NOW_MS)
  for (let offset = 8n; offset < 500_000n; offset += 1n) {
    mark.read(offset)
    mark.finish(offset)
  }
  assert.equal(mark.isFull, false)
  assert.equal(mark.position, 7n)
  const metadata = mark.encode()
  assert.ok(metadata.length < 100, metadata)
  const next = new Watermark(7n, metadata)
  const again: bigint[] = []
  for (let offset = 7n; offset < 500_002n; offset += 1n) if (next.read(offset)) again.push(offset)
  assert.deepEqual(again, [7n, 500_000n, 500_001n])
  assert.deepEqual(next.trialOf(7n), { starts: 1, dueMs: NOW_MS + 300_000, firstFailureMs: NOW_MS })
  for (const offset of again) next.finish(offset)
  assert.equal(next.position, 500_002n)
})

test('a key that waits with all that came behind it, in a window far wider than a bitmap, is told whole', () => {
  const mark = new Watermark(0n)
  const ofKey = (offset: bigint): boolean => offset % 1_000n === 0n
  const last = BigInt(PIECES_MAX - 1) * 1_000n
  for (let offset = 0n; offset <= last; offset += 1n) {
    mark.read(offset)
    if (!ofKey(offset)) mark.finish(offset)
  }
  assert.equal(mark.isFull, false)
  const next = new Watermark(0n, mark.encode())
  let again = 0
  for (let offset = 0n; offset <= last; offset += 1n) {
    if (!next.read(offset)) continue
    again += 1
    assert.ok(ofKey(offset), String(offset))
  }
  assert.equal(again, PIECES_MAX)
})

test('a window is full when it is wide and in too many pieces, or by its failures, and opens again', () => {
  const wide = readOf(WINDOW_MAX)
  for (let index = 1; index <= PIECES_MAX; index += 1) wide.finish(BigInt(index * 2))
  assert.equal(wide.isFull, true)
  wide.finish(3n)
  assert.equal(wide.isFull, false)
  const failing = readOf(TRIALS_MAX)
  for (let index = 0; index < TRIALS_MAX; index += 1) {
    failing.start(BigInt(index))
    failing.defer(BigInt(index), NOW_MS, NOW_MS)
  }
  assert.equal(failing.isFull, true)
  failing.finish(5n)
  assert.equal(failing.isFull, false)
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
    const mark = new Watermark(5n, metadata)
    assert.equal(mark.read(5n), true, String(metadata))
    assert.equal(mark.trialOf(5n).starts, 0, String(metadata))
  }
})
