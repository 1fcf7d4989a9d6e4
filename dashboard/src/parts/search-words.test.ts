import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseSearch } from '../../../src/job/search.ts'
import { completions, tagTerm } from './search-words.ts'

test('the last term is continued by fields, types and values', () => {
  assert.deepEqual(completions('error:x t', []), ['error:x type:', 'error:x tag:', 'error:x tenant:'])
  assert.deepEqual(completions('type:m', ['mail', 'bill', 'merge']), ['type:mail', 'type:merge'])
  assert.deepEqual(completions('a state:d', []), ['a state:dead', 'a state:discarded'])
  assert.deepEqual(completions('key:x', []), [])
})

test('every field that is offered is one of the language', () => {
  for (const field of completions('', []))
    parseSearch(field.endsWith('.') ? `${field}a:1` : `${field}${exampleFor(field)}`, 0)
})

function exampleFor(field: string): string {
  if (field === 'state:') return 'queued'
  return field === 'since:' || field === 'until:' ? '1h' : 'x'
}

test('the term of a tag is read as the tag', () => {
  for (const tag of ['import-7', 'a b', String.raw`say "hi" \o/`, 'a:b']) {
    assert.deepEqual(parseSearch(tagTerm(tag), 0).tags, [tag])
  }
})
