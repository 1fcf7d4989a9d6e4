import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { SCHEMA_VERSION } from '../../../src/engines/sqlite/migrations.ts'
import { tempFiles } from '../../../test/fixtures/temp-files.ts'
import { openDatabase } from './database.ts'
import { CURRENT_VERSIONS, openCurrent } from './open-current.ts'
import { CONVERSATIONS_SCHEMA_VERSION, conversationsVersions, migrateConversations } from './schema.ts'

const files = tempFiles()
const opened = () => openDatabase(':memory:', { nowMs: 0 })
const columns = (database: DatabaseSync, table: string) =>
  database
    .prepare(`SELECT name FROM pragma_table_info(?)`)
    .all(table)
    .map(({ name }) => name)

// B103 B108 X127
test('the tables have the columns of the pipeline', () => {
  const database = opened()
  assert.deepEqual(columns(database, 'conversations'), ['id', 'metadata', 'created_at', 'updated_at'])
  assert.deepEqual(columns(database, 'messages'), [
    ...['id', 'conversation_id', 'role', 'seq', 'content', 'sanitization_version', 'validated_at', 'created_at'],
  ])
  assert.deepEqual(columns(database, 'sanitization_log'), [
    ...['id', 'conversation_id', 'message_id', 'category', 'original_snippet_hash', 'replacement', 'detector'],
    ...['confidence', 'created_at'],
  ])
  assert.deepEqual(columns(database, 'learnings'), [
    ...['id', 'conversation_id', 'category', 'title', 'content', 'confidence', 'tags', 'dedupe_hash'],
    ...['source_message_ids', 'created_at'],
  ])
})

// B109 X127
test('the tables refuse what the pipeline never writes', () => {
  const database = opened()
  database.exec(`INSERT INTO conversations VALUES ('c', '{}', '', '')`)
  const learning = (id: string, hash: string, tags = '[]') =>
    `INSERT INTO learnings VALUES ('${id}', 'c', 'fix', 't', 'x', 0.5, '${tags}', '${hash}', '[]', '')`
  database.exec(learning('1', 'same'))
  const refused = [
    learning('2', 'same'),
    learning('3', 'other', 'no JSON'),
    `INSERT INTO messages VALUES ('m', 'none', 'user', 1, '', '', NULL, '')`,
    `INSERT INTO messages VALUES ('m', 'c', 'robot', 1, '', '', NULL, '')`,
    `INSERT INTO conversations VALUES ('d', 'no JSON', '', '')`,
  ]
  for (const sql of refused) assert.throws(() => database.exec(sql), /constraint failed/, sql)
})

test('migrating again changes nothing', async () => {
  const database = opened()
  migrateConversations(database, '')
  assert.equal(conversationsVersions(database).applied, CONVERSATIONS_SCHEMA_VERSION)
  const file = files.next()
  const handles = Array.from({ length: 4 }, () => openDatabase(file, { nowMs: 0 }))
  assert.equal(handles[0]?.prepare('SELECT count(*) AS count FROM conversations_schema').get()?.count, 1)
  for (const handle of handles) handle.close()
  const plain = new DatabaseSync(':memory:')
  assert.equal(conversationsVersions(plain).applied, 0)
  plain.close()
})

test('a file with both schemas up to date is opened without their SQL, any other one is left alone', () => {
  assert.deepEqual(CURRENT_VERSIONS, { queue: SCHEMA_VERSION, conversations: CONVERSATIONS_SCHEMA_VERSION })
  const file = files.next()
  assert.equal(openCurrent(file, 0), null)
  openDatabase(file, { nowMs: 0 }).close()
  const database = openCurrent(file, 0)
  const pragma = (name: string) => database?.prepare(`PRAGMA ${name}`).get()?.[name]
  assert.deepEqual(['journal_mode', 'synchronous', 'secure_delete', 'foreign_keys'].map(pragma), ['wal', 2, 1, 1])
  // A migration that this version can work with.
  database?.exec(`INSERT INTO conversations_schema VALUES (-98, '')`)
  assert.ok(openCurrent(file, 0))
  openDatabase(file, { nowMs: 0 }).close()
  database?.exec(`INSERT INTO conversations_schema VALUES (99, '')`)
  database?.close()
  assert.throws(() => openDatabase(file, { nowMs: 0 }), { code: 'ERR_SCHEMA_NEWER' })
  assert.equal(openCurrent(file, 0), null)
})
