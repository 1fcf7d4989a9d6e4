import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { citedIds, collect, rowIds, summary, withCitations } from './requirements-ledger.ts'

const LEDGER = [
  '# Requirements',
  '',
  '| id | requirement | how to check | tests |',
  '|---|---|---|---|',
  '| A01 | At least once | kill a worker |  |',
  '| A02 | Idempotent | run `a | b` twice | old/file.ts |',
  '| A03 | Visible | query |  |',
  '| X001 | 000/001 | Priorities differ | 1 first |  |',
  '',
].join('\n')

const ids = ['A01', 'A02', 'A03', 'X001']
const cited = (source: string): readonly string[] => [...citedIds(source)]

test('comments cite rows: one, several, in brackets, in blocks, after code', () => {
  assert.deepEqual(cited('// B41 B42'), ['B41', 'B42'])
  assert.deepEqual(cited('  // X130, C29: it is run again (A10).'), ['X130', 'C29', 'A10'])
  assert.deepEqual(cited('/**\n * B18\n * E07\n */'), ['B18', 'E07'])
  assert.deepEqual(cited("test('x', run) // D05"), ['D05'])
})

test('a range cites every row between, with the width of its document', () => {
  assert.deepEqual(cited('// B08..B11'), ['B08', 'B09', 'B10', 'B11'])
  assert.deepEqual(cited('// B99..B101 X009..X010'), ['B99', 'B100', 'B101', 'X009', 'X010'])
  assert.throws(() => cited('// B11..B08'), /not a range/)
  assert.throws(() => cited('// B08..C09'), /not a range/)
})

test('code, strings and what only looks like an id do not cite', () => {
  for (const source of ["const B41 = 'B42'", "'https://host/B41'", '// AB41 B4 F12 X12 B41x', '// I4 ULID 01JB41']) {
    assert.deepEqual(cited(source), [], source)
  }
})

test('an id that no row has is an error that names the file', () => {
  assert.throws(() => collect(ids, new Map([['a.test.ts', '// A99']])), /a\.test\.ts cites A99/)
})

test('only the last column is written, and writing twice changes nothing', () => {
  const sources = new Map(['1', '2', '3', '4', '5'].map((name) => [`${name}.test.ts`, '// A02']))
  sources.set('x.test.ts', '// A01..A01 X001')
  const written = withCitations(LEDGER, collect(ids, sources))
  assert.deepEqual(written.split('\n').slice(4), [
    '| A01 | At least once | kill a worker | x.test.ts |',
    '| A02 | Idempotent | run `a | b` twice | 1.test.ts, 2.test.ts, 3.test.ts, +2 |',
    '| A03 | Visible | query |  |',
    '| X001 | 000/001 | Priorities differ | 1 first | x.test.ts |',
    '',
  ])
  assert.equal(withCitations(written, collect(ids, sources)), written)
  assert.equal(withCitations(written, collect(ids, new Map())), LEDGER.replace('old/file.ts', ''))
})

test('the summary counts by document and names what nothing cites', () => {
  assert.deepEqual(summary(collect(ids, new Map([['a', '// A02 X001']]))), [
    'A: 1 of 3 rows cited',
    '   not cited: A01 A03',
    'X: 1 of 1 rows cited',
  ])
  assert.deepEqual(summary(collect(ids, new Map([['a', '// X001']]))).slice(0, 2), [
    'A: 0 of 3 rows cited',
    '   not cited: A01..A03',
  ])
})

test('the ledger has every row of the five documents once', () => {
  const rows = rowIds(readFileSync(new URL('../test/requirements.md', import.meta.url), 'utf8'))
  const counts = Object.groupBy(rows, (id) => id.charAt(0))
  const lengths = Object.fromEntries(Object.entries(counts).map(([letter, found]) => [letter, found?.length]))
  assert.deepEqual(lengths, { A: 173, B: 203, C: 37, D: 69, E: 62, X: 194 })
  assert.equal(new Set(rows).size, rows.length)
})
