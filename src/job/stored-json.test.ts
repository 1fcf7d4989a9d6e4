import assert from 'node:assert/strict'
import { test } from 'node:test'
import { canonicalJson, isRecord, parseOrText } from './stored-json.ts'

test('equal values have the same text, whatever the order of their properties', () => {
  const value = { b: [1, { d: null, c: 'ü"\n' }, []], a: true, '': {} }
  assert.equal(canonicalJson(value), '{"":{},"a":true,"b":[1,{"c":"ü\\"\\n","d":null},[]]}')
  assert.deepEqual(JSON.parse(canonicalJson(value)), value)
  assert.equal(canonicalJson({ '2': 0, '10': 0, a: 0 }), canonicalJson({ a: 0, '10': 0, '2': 0 }))
  assert.equal(canonicalJson(undefined), '')
})

test('a property named __proto__ is one like any other', () => {
  const value: unknown = JSON.parse('{"__proto__":{"a":1},"b":2}')
  assert.equal(canonicalJson(value), '{"__proto__":{"a":1},"b":2}')
})

test('what is nested a hundred thousand levels deep is written too', () => {
  const text = '[{"a":'.repeat(50_000) + '}]'.repeat(50_000).replace('}]', '1}]')
  assert.equal(canonicalJson(JSON.parse(text)), text)
})

test('text that is not JSON stays text', () => {
  assert.deepEqual([parseOrText('{"a":1}'), parseOrText('{"a":')], [{ a: 1 }, '{"a":'])
  assert.deepEqual([{}, [], null, 'x'].map(isRecord), [true, false, false, false])
})
