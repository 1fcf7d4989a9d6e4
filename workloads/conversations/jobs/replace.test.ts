import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isPlaceholder, replaceFound, storedCategory } from './replace.ts'

const found = (snippet: string, category = 'name') => ({ snippet, category, confidence: 0.9 })
const textOf = (text: string, ...snippets: readonly string[]) =>
  replaceFound(
    text,
    snippets.map((snippet) => found(snippet)),
  ).text

// X096
test('every occurrence of every snippet is replaced', () => {
  assert.equal(textOf('ask Ann, then ann_lee, then Ann', 'Ann', 'ann_lee'), 'ask [NAME], then [NAME], then [NAME]')
  assert.equal(textOf('Ann', 'Ann'), '[NAME]')
  assert.equal(textOf('nothing here', 'Ann'), 'nothing here')
})

// X096
test('overlapping snippets leave nothing of either, and the longest names the replacement', () => {
  const text = 'mail Ann Lee Smithson now'
  const { text: replaced } = replaceFound(text, [found('Ann Lee'), found('Lee Smithson', 'surname')])
  assert.equal(replaced, 'mail [SURNAME] now')
  assert.equal(textOf('Ann Lee', 'Ann', 'Ann Lee', 'Lee'), '[NAME]')
  assert.equal(textOf('AnnLee', 'Ann', 'Lee'), '[NAME][NAME]')
})

test('a snippet quoted in another case or with other white space is found', () => {
  assert.equal(textOf('ask ANN\n  Lee.', 'Ann Lee'), 'ask [NAME].')
  assert.equal(textOf('path C:\\users\\ann (x)', 'c:\\Users\\ANN (X)'), 'path [NAME]')
})

test('a snippet that is not in the text has no replacement', () => {
  const { text, replacements } = replaceFound('ask Ann', [found('Bob'), found('Ann')])
  assert.equal(text, 'ask [NAME]')
  assert.deepEqual(
    replacements.map(({ replacement }) => replacement),
    [null, '[NAME]'],
  )
})

test('a million characters take no more than linear time', () => {
  const text = 'aaaaaaaaa '.repeat(100_000)
  const replaced = textOf(text, 'aaaa', 'aaab', 'A a', 'a'.repeat(2_000))
  assert.ok(replaced.length > 0)
})

test('a category is stored as a plain name that repeats no part of a snippet', () => {
  assert.equal(storedCategory('Person Name', ['Ann Lee']), 'person_name')
  assert.equal(storedCategory('email', ['a@b.ch']), 'email')
  assert.equal(storedCategory('Ann Lee', ['Ann Lee']), 'other')
  assert.equal(storedCategory('ann', ['ann_lee']), 'other')
  for (const bad of ['', '0791234567', 'a'.repeat(41), 'ein Satz aus viel mehr als fünf Wörtern', '姓名']) {
    assert.equal(storedCategory(bad, []), 'other')
  }
})

test('placeholders of earlier replacements are recognised', () => {
  assert.deepEqual(['[EMAIL]', ' [PERSON_NAME] ', '[EMAIL] Ann', '[x]'].map(isPlaceholder), [true, true, false, false])
})
