import assert from 'node:assert/strict'
import { test } from 'node:test'
import { addLearning, CONVERSATION } from '../../../test/fixtures/conversations.ts'
import { openDatabase } from './database.ts'
import { LearningRepository } from './learnings.ts'

function repository() {
  const database = openDatabase(':memory:', { nowMs: Date.UTC(2026, 0, 1) })
  const add = (title: string, content: string) => addLearning(database, { title, content })
  return { database, add, learnings: new LearningRepository(database) }
}

// B188 B108
test('learnings are found by id and by conversation, with lists instead of JSON', () => {
  const { add, learnings } = repository()
  const id = add('Cold caches', 'Warm the cache.')
  add('Pools', 'Close what you open.')
  const found = learnings.findById(id)
  assert.deepEqual([found?.title, found?.tags, found?.source_message_ids], ['Cold caches', ['cache'], ['m1']])
  assert.deepEqual(
    learnings.findByConversation(CONVERSATION).map(({ title }) => title),
    ['Cold caches', 'Pools'],
  )
  assert.equal(learnings.findById('none'), null)
  assert.deepEqual(learnings.findByConversation('none'), [])
})

// B66 X127
test('a search finds all words in title or content, whatever the text is', () => {
  const { database, add, learnings } = repository()
  add('Cold caches', 'Warm the cache before you measure.')
  add('Pools', 'Close what you open. "Quoted" C++ AND NOT near(this)')
  const titles = (query: string) => learnings.search(query).map(({ title }) => title)
  assert.deepEqual(titles('cache measure'), ['Cold caches'])
  assert.deepEqual(titles('measur*'), ['Cold caches'])
  assert.deepEqual(titles('measur'), [])
  assert.deepEqual(titles('AND near(this)'), ['Pools'])
  assert.throws(() => learnings.search('cache', -1), { code: 'ERR_OPTION_INVALID', message: /from 1 to 10000/ })
  for (const hostile of [
    '"',
    '""',
    'a" OR "b',
    'title:',
    '-cold',
    '^',
    '*',
    '(',
    'NEAR(',
    '{a b}:',
    '\0',
    '',
    ' ',
    "';--",
  ]) {
    assert.doesNotThrow(() => titles(hostile), hostile)
  }
  database.exec(`UPDATE learnings SET title = 'Ponds' WHERE title = 'Pools'`)
  assert.deepEqual([titles('pools'), titles('ponds')], [[], ['Ponds']])
  database.exec('DELETE FROM learnings')
  assert.deepEqual(titles('cache'), [])
})
