import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { ChurnMap } from './churn-map.ts'

test('it is a map, whatever comes and goes', () => {
  const step = fc.record({ key: fc.nat(300), isIn: fc.boolean() })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 2_000 }), (steps) => {
      const [map, plain] = [new ChurnMap<number, string>(), new Map<number, string>()]
      for (const { key, isIn } of steps) {
        if (isIn) {
          map.set(key, `${key}`)
          plain.set(key, `${key}`)
        } else assert.equal(map.delete(key), plain.delete(key))
        assert.deepEqual([map.size, map.has(key), map.get(key)], [plain.size, plain.has(key), plain.get(key)])
      }
      assert.deepEqual([...map], [...plain])
      assert.deepEqual([...map.keys()], [...plain.keys()])
      assert.deepEqual([...map.values()], [...plain.values()])
    }),
    { numRuns: 50 },
  )
})

test('a look at all of it that takes out what it sees sees each once', () => {
  const map = new ChurnMap<number, number>()
  for (let n = 0; n < 1_000; n += 1) map.set(n, n)
  const seen: number[] = []
  for (const [key] of map) {
    seen.push(key)
    map.delete(key)
  }
  assert.equal(map.size, 0)
  assert.deepEqual(
    seen,
    Array.from({ length: 1_000 }, (_, n) => n),
  )
})
