import assert from 'node:assert/strict'
import { test } from 'node:test'
import { layOut } from './layout.ts'

const node = (id: string, ...after: string[]) => ({ id, type: 'step', state: 'queued', after })

test('a job stands further than everything that it comes after', () => {
  const { nodes, edges, columns, rows } = layOut([node('end', 'a', 'c'), node('a'), node('b'), node('c', 'b', 'a')])
  const columnOf = Object.fromEntries(nodes.map(({ id, column }) => [id, column]))
  assert.deepEqual(columnOf, { end: 2, a: 0, b: 0, c: 1 })
  assert.deepEqual([columns, rows, edges.length], [3, 2, 4])
  const places = new Set(nodes.map(({ column, row }) => `${column} ${row}`))
  assert.equal(places.size, nodes.length)
})

test('a job stands right before the one that waits for it, however long another way is', () => {
  const { nodes } = layOut([node('late'), node('a'), node('b', 'a'), node('end', 'b', 'late')])
  assert.equal(nodes.find(({ id }) => id === 'late')?.column, 1)
})

test('predecessors that are no longer stored are left out', () => {
  assert.deepEqual(layOut([node('a', 'gone')]).edges, [])
})

test('a circle ends', () => {
  assert.equal(layOut([node('a', 'b'), node('b', 'a')]).nodes.length, 2)
})
