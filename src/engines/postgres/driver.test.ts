import assert from 'node:assert/strict'
import { test } from 'node:test'
import { postgresServer, query } from '../../../test/servers/postgres.ts'
import { arrayOf, arrayOfNumbers } from './driver.ts'

test('texts of any kind arrive as they are', async () => {
  const { url } = await postgresServer()
  const arrays = [
    [],
    ['a', 'b'],
    ['', 'null', 'NULL'],
    ['a"b', 'c\\d', '{e,f}', ' g ', '(0,1)', "h'i", 'j\nk', '\u{1F600}é'],
  ]
  for (const texts of arrays) {
    const [row] = await query<{ texts: string[] }>(url, 'select $1::text[] as texts', [arrayOf(texts)])
    assert.deepEqual(row?.texts, texts)
  }
})

test('numbers of any size arrive as they are', async () => {
  const { url } = await postgresServer()
  for (const numbers of [[], [0], [1, -2.5, 1e-7, 1e21, Number.MAX_SAFE_INTEGER]]) {
    const [row] = await query<{ numbers: number[] }>(url, 'select $1::float8[] as numbers', [arrayOfNumbers(numbers)])
    assert.deepEqual(row?.numbers, numbers)
  }
})
