import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sourceFiles } from './source.ts'

const LINES_MAX = 300
const EXCEPTION = /^\/\/ Longer than 300 lines because \S.{10,}/m

test('a file has at most 300 lines, or a line that says why it has more', () => {
  const files = sourceFiles(['src', 'conformance', 'proof', 'workloads', 'bench', 'scripts', 'examples', 'test'], {
    tests: true,
  })
  const tooLong = files
    .map(({ path, text }) => ({ path, text, lines: text.trimEnd().split('\n').length }))
    .filter(({ text, lines }) => lines > LINES_MAX && !EXCEPTION.test(text))
  assert.deepEqual(
    tooLong.map(({ path, lines }) => `${path} has ${lines} lines`),
    [],
  )
})

test('an exception needs a reason', () => {
  assert.doesNotMatch('// Longer than 300 lines because', EXCEPTION)
  assert.doesNotMatch('// Longer than 300 lines because x', EXCEPTION)
  assert.match('a\n// Longer than 300 lines because the table of cases is one table\nb', EXCEPTION)
})
