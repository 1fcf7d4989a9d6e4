import assert from 'node:assert/strict'
import { test } from 'node:test'
import { checkTags, tagsOf } from './tags.ts'

test('each tag is kept once, in the order given', () => {
  assert.deepEqual(checkTags(['import-7', 'a b', 'import-7']), ['import-7', 'a b'])
  assert.deepEqual(checkTags([]), [])
})

test('a bad tag is refused with what is allowed', () => {
  for (const tag of ['', ' a', 'a\nb', '\ud800', 'x'.repeat(65)]) {
    assert.throws(() => checkTags([tag]), /1 to 64 printable characters/)
  }
  const eleven = Array.from({ length: 11 }, (_, n) => `t${n}`)
  assert.throws(() => checkTags(eleven), /'tags' has 11 tags; give at most 10 for one job/)
  // @ts-expect-error without types, one tag may come as text
  assert.throws(() => checkTags('import-7'), /'tags' is not a list/)
})

test('options of another program need not have a list of texts', () => {
  assert.deepEqual([tagsOf(null), tagsOf({}), tagsOf({ tags: 'x' }), tagsOf({ tags: ['a', 1] })], [[], [], [], ['a']])
})
