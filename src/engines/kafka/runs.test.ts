import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { packRuns, unpackRuns } from './packing.ts'
import { countOf, inOrder, type Run, Runs } from './runs.ts'

const ORIGIN = 9_000_000_000

/** Offsets that are dense in places and wide in others. */
const offsets = fc.array(
  fc.record({ gap: fc.oneof(fc.nat(3), fc.nat(5_000)), length: fc.integer({ min: 1, max: 60 }) }),
  { maxLength: 60 },
)

function runsOf(parts: readonly { readonly gap: number; readonly length: number }[]): readonly Run[] {
  const runs: Run[] = []
  let at = ORIGIN
  for (const { gap, length } of parts) {
    runs.push([at + gap, at + gap + length])
    at += gap + length
  }
  return inOrder(runs)
}

test('offsets that come one by one in any order are the same runs', () => {
  fc.assert(
    fc.property(offsets, fc.integer(), (parts, seed) => {
      const wanted = runsOf(parts)
      const single = wanted.flatMap(([from, to]) => Array.from({ length: to - from }, (_, n) => from + n))
      const set = new Runs()
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
      const runs = runsOf(parts)
      assert.deepEqual(unpackRuns(ORIGIN, packRuns(ORIGIN, runs, 10_000)), runs)
      const packed = packRuns(ORIGIN, runs, charsMax)
      assert.ok(packed.length <= charsMax, `${packed.length} of ${charsMax}`)
      const found = unpackRuns(ORIGIN, packed)
      const end = found.at(-1)?.[1] ?? ORIGIN
      const expected = runs.flatMap(([from, to]): Run[] => (from < end ? [[from, to < end ? to : end]] : []))
      assert.deepEqual(found, expected)
    }),
    { numRuns: 200 },
  )
})

test('counting stops at a limit', () => {
  const runs: Run[] = [
    [1, 4],
    [10, 20],
  ]
  assert.equal(countOf(runs), 13)
  assert.equal(countOf(runs, 12), 5)
  assert.equal(countOf(runs, 0), 0)
})
