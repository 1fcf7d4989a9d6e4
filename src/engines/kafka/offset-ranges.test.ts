import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { countOf, inOrder, type OffsetRange, OffsetRanges, packRanges, unpackRanges } from './offset-ranges.ts'

const ORIGIN = 9_000_000_000

/** Offsets that are dense in places and wide in others. */
const offsets = fc.array(
  fc.record({ gap: fc.oneof(fc.nat(3), fc.nat(5_000)), length: fc.integer({ min: 1, max: 60 }) }),
  { maxLength: 60 },
)

function runsOf(parts: readonly { readonly gap: number; readonly length: number }[]): readonly OffsetRange[] {
  const ranges: OffsetRange[] = []
  let at = ORIGIN
  for (const { gap, length } of parts) {
    ranges.push([at + gap, at + gap + length])
    at += gap + length
  }
  return inOrder(ranges)
}

test('offsets that come one by one in any order are the same runs', () => {
  fc.assert(
    fc.property(offsets, fc.integer(), (parts, seed) => {
      const wanted = runsOf(parts)
      const single = wanted.flatMap(([from, to]) => Array.from({ length: to - from }, (_, n) => from + n))
      const set = new OffsetRanges()
      const key = (offset: number): number => (offset * 7_919 + seed) % 1_009
      for (const offset of single.toSorted((a, b) => key(a) - key(b))) set.add(offset, offset + 1)
      assert.deepEqual(inOrder(set), wanted)
      assert.equal(set.size, wanted.length)
      assert.equal(countOf(set), single.length)
      for (const [from, to] of wanted) assert.equal(set.takeFrom(from), to)
      assert.equal(set.takeFrom(ORIGIN), null)
      assert.equal(set.size, 0)
    }),
    { numRuns: 60 },
  )
})

test('what is packed comes out again, and what has no room is missing from its end', () => {
  fc.assert(
    fc.property(offsets, fc.integer({ min: 0, max: 400 }), (parts, charsMax) => {
      const ranges = runsOf(parts)
      assert.deepEqual(unpackRanges(ORIGIN, packRanges(ORIGIN, ranges, 10_000)), ranges)
      const packed = packRanges(ORIGIN, ranges, charsMax)
      assert.ok(packed.length <= charsMax, `${packed.length} of ${charsMax}`)
      const found = unpackRanges(ORIGIN, packed)
      const end = found.at(-1)?.[1] ?? ORIGIN
      const expected = ranges.flatMap(([from, to]): OffsetRange[] => (from < end ? [[from, to < end ? to : end]] : []))
      assert.deepEqual(found, expected)
    }),
    { numRuns: 200 },
  )
})

test('counting stops at a limit', () => {
  const ranges: OffsetRange[] = [
    [1, 4],
    [10, 20],
  ]
  assert.equal(countOf(ranges), 13)
  assert.equal(countOf(ranges, 12), 5)
  assert.equal(countOf(ranges, 0), 0)
})
