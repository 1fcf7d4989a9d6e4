import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { Heap, type Heaped } from './heap.ts'

interface Item extends Heaped {
  readonly rank: number
}

test('whatever is pushed and removed, the first is the least of those inside', () => {
  // Long plans: only a deep heap has a last item that must rise when it fills a gap.
  const step = fc.record({ rank: fc.nat(1_000), remove: fc.option(fc.nat(100), { freq: 3 }) })
  const steps = fc.array(step, { minLength: 50, maxLength: 200 })
  fc.assert(
    fc.property(steps, (plan) => {
      const heap = new Heap<Item>((a, b) => a.rank < b.rank)
      const inside: Item[] = []
      for (const { rank, remove } of plan) {
        const leaving = remove === null ? undefined : inside[remove]
        if (leaving !== undefined) {
          inside.splice(inside.indexOf(leaving), 1)
          assert.equal(heap.remove(leaving), true)
          assert.equal(heap.remove(leaving), false)
        }
        const item = { rank, heapIndex: -1 }
        inside.push(item)
        heap.push(item)
        assert.equal(heap.first?.rank, Math.min(...inside.map((other) => other.rank)))
      }
      const order: number[] = []
      for (let first = heap.first; first !== undefined; first = heap.first) {
        order.push(first.rank)
        heap.remove(first)
      }
      const expected = inside.map((item) => item.rank).sort((a, b) => a - b)
      assert.deepEqual(order, expected)
    }),
  )
})
