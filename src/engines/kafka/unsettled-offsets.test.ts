import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { UnsettledOffsets } from './unsettled-offsets.ts'

const step = fc.record({
  gap: fc.oneof({ weight: 20, arbitrary: fc.constant(0) }, fc.nat(20_000)),
  does: fc.constantFrom('start', 'restart', 'close', 'nothing'),
  back: fc.oneof(fc.nat(3), fc.nat(10_000)),
})

test('it is a map from offsets to whether they were started, however far they are apart', () => {
  fc.assert(
    fc.property(fc.nat(9_007_000_000_000), fc.array(step, { maxLength: 300 }), (first, steps) => {
      const [open, plain] = [new UnsettledOffsets(), new Map<number, boolean>()]
      let next = first
      for (const { gap, does, back } of steps) {
        next += gap
        open.add(next)
        plain.set(next, false)
        next += 1
        const offset = [...plain.keys()].at(-1 - (back % plain.size)) ?? next
        if (does === 'close') assert.equal(open.delete(offset), plain.delete(offset))
        else if (does !== 'nothing') {
          open.setStarted(offset, does === 'start')
          plain.set(offset, does === 'start')
        }
        assert.deepEqual(
          [open.size, open.has(offset), open.isStarted(offset), open.delete(next), open.has(offset - 1)],
          [plain.size, plain.has(offset), plain.get(offset) ?? false, false, plain.has(offset - 1)],
        )
      }
      const started = [...plain].flatMap(([offset, isStarted]) => (isStarted ? [offset] : []))
      assert.deepEqual([...open.started(0)].sort(), started.sort())
    }),
    { numRuns: 200 },
  )
})
