import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readJson } from './json-text.ts'

test('JSON is read, whatever it is', () => {
  assert.deepEqual(readJson(' {"a":[1]} '), { ok: true, value: { a: [1] } })
  assert.deepEqual(readJson('null'), { ok: true, value: null })
})

test('invalid JSON names the line, and an empty field says what to enter', () => {
  const broken = readJson('{\n  "a": 1,\n  b: 2\n}')
  assert.ok(!broken.ok)
  assert.match(broken.why, /\(line 3, sign 3\)/)
  const empty = readJson('  ')
  assert.ok(!empty.ok)
  assert.match(empty.why, /null/)
})
