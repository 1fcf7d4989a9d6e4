import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { IndexedSet } from './indexed-set.ts'

test('an indexed set behaves like a Set, whatever is added and removed', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.boolean(), fc.nat(20))), (steps) => {
      const items = Array.from({ length: 21 }, (_, name) => ({ name, setIndex: -1 }))
      const [indexed, set] = [
        new IndexedSet<{ name: number; setIndex: number }>(),
        new Set<{ name: number; setIndex: number }>(),
      ]
      for (const [isAdded, index] of steps) {
        const item = items[index]
        assert.ok(item)
        if (isAdded) {
          indexed.add(item)
          set.add(item)
        } else assert.equal(indexed.delete(item), set.delete(item))
        assert.equal(indexed.has(item), set.has(item))
        assert.equal(indexed.size, set.size)
      }
      const byName = (one: { name: number }, other: { name: number }) => one.name - other.name
      assert.deepEqual(indexed.values().sort(byName), [...set].sort(byName))
    }),
  )
})

test('a set may be emptied while its values are iterated', () => {
  const indexed = new IndexedSet()
  for (let count = 0; count < 3; count += 1) indexed.add({ setIndex: -1 })
  const gone = indexed.values().filter((item) => indexed.delete(item))
  assert.deepEqual([gone.length, indexed.size], [3, 0])
})
