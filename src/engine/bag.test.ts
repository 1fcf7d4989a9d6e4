import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { Bag } from './bag.ts'

test('a bag is a set, whatever is added and removed', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.boolean(), fc.nat(20))), (steps) => {
      const items = Array.from({ length: 21 }, (_, name) => ({ name, bagAt: -1 }))
      const [bag, set] = [new Bag<{ name: number; bagAt: number }>(), new Set<{ name: number; bagAt: number }>()]
      for (const [isAdded, index] of steps) {
        const item = items[index]
        assert.ok(item)
        if (isAdded) {
          bag.add(item)
          set.add(item)
        } else assert.equal(bag.delete(item), set.delete(item))
        assert.equal(bag.has(item), set.has(item))
        assert.equal(bag.size, set.size)
      }
      const byName = (one: { name: number }, other: { name: number }) => one.name - other.name
      assert.deepEqual(bag.values().sort(byName), [...set].sort(byName))
    }),
  )
})

test('whoever goes through a bag may empty it', () => {
  const bag = new Bag()
  for (let count = 0; count < 3; count += 1) bag.add({ bagAt: -1 })
  const gone = bag.values().filter((item) => bag.delete(item))
  assert.deepEqual([gone.length, bag.size], [3, 0])
})
