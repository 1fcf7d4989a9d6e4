import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { drain } from '../../../src/testing/drain.ts'
import {
  addLearning,
  addMessages,
  CONVERSATION,
  finding,
  learning,
  openExtraction,
} from '../../../test/fixtures/conversations.ts'
import { tempFiles } from '../../../test/fixtures/temp-files.ts'
import { writeToSpool } from '../hook/spool.ts'
import { SANITIZE_AI_VALIDATION } from '../jobs/contract.ts'
import { openDatabase } from './database.ts'
import { forgetConversation, retainConversations } from './forget.ts'

const files = tempFiles()
const OTHER = '01HXZ0000000000000000000BB'
const home = files.folder
const UPLOAD = {
  ...{ ipfsEndpoint: 'http://127.0.0.1:5001', rpcUrl: 'http://127.0.0.1:8545', chainId: 31337 },
  ...{ contractAddress: `0x${'ab'.repeat(20)}`, privateKeyRef: 'env:KEY' },
}

/** The bytes of the database and its write-ahead log. */
function bytesOf(file: string): string {
  return [file, `${file}-wal`].map((one) => (existsSync(one) ? readFileSync(one, 'latin1') : '')).join('')
}

test('forgetting removes messages, findings, learnings, jobs with their history, and the spool; another conversation stays', async () => {
  const file = files.next()
  await using pipeline = await openExtraction(file, { upload: UPLOAD })
  const { database, model, mill, run, validation } = pipeline
  addMessages(database, ['quokkafact by Ann', 'more'])
  addMessages(database, ['wombatfact stays'], { conversation: OTHER })
  model.findings = finding('Ann')
  model.learnings = (messages) =>
    messages.map(({ id, content }) => learning({ content: `about ${content}`, source_message_ids: [id] }))
  await run()
  // A dead letter with a history, and a job that waits.
  addMessages(database, ['again'])
  model.findings = () => {
    throw new TypeError('nonsense')
  }
  await drain(mill, [validation])
  const before = (await mill.jobs()).length
  const spooled = {
    id: '01HXZ0000000000000000000CC',
    conversationId: CONVERSATION,
    role: 'user',
    content: 'quokkafact',
  } as const
  writeToSpool([`${file}.spool`], { ...spooled, version: '1', findings: [], cut: 0, at: '2026-01-01T00:00:00.000Z' })
  assert.match(bytesOf(file), /quokkafact/)

  const { published, ...counts } = await forgetConversation({ database, home }, CONVERSATION)
  // Two validations, one extraction and two uploads.
  assert.deepEqual(counts, {
    ...{ conversations: 1, messages: 3, findings: 1, learnings: 2, jobs: 5, spooled: 1, isErased: true },
  })
  assert.deepEqual(published, [])
  const left = await mill.jobs()
  assert.equal(left.length, before - 5)
  assert.ok(left.every(({ payload }) => !payload.includes(CONVERSATION)))
  assert.equal(database.prepare('SELECT count(*) AS count FROM job_events').get()?.count, 0)
  const bytes = bytesOf(file)
  assert.doesNotMatch(bytes, /quokkafact|quokka/)
  assert.match(bytes, /wombatfact/)
  assert.equal(existsSync(path.join(`${file}.spool`, `${spooled.id}.json`)), false)
  const again = await forgetConversation({ database, home }, CONVERSATION)
  assert.deepEqual([again.conversations, again.jobs, again.isErased], [0, 0, true])
})

test('an id that is no id of a conversation is refused, and the spool stays', async () => {
  const file = files.next()
  await using pipeline = await openExtraction(file)
  const message = { id: '01HXZ0000000000000000000CC', conversationId: OTHER, role: 'user', content: 'x' } as const
  const at = '2026-01-01T00:00:00.000Z'
  const folder = writeToSpool([`${file}.spool`], { ...message, version: '1', findings: [], cut: 0, at })
  // Every entry contains these.
  for (const id of ['', 'user', 'conversationId', '0']) {
    await assert.rejects(forgetConversation({ database: pipeline.database, home }, id), { code: 'ERR_OPTION_INVALID' })
  }
  assert.equal(existsSync(path.join(folder, `${message.id}.json`)), true)
})

test('what was published is returned, with every transaction that was signed', async () => {
  await using pipeline = await openExtraction(files.next())
  const { database } = pipeline
  const confirmed = addLearning(database, { title: 'one', content: 'one' })
  const signed = addLearning(database, { title: 'two', content: 'two' })
  addLearning(database, { title: 'three', content: 'three' })
  database
    .prepare(`INSERT INTO uploads (id, learning_id, ipfs_cid, chain_tx_hash, status, created_at, updated_at)
      VALUES ('u1', ?, 'bafy', '0x01', 'confirmed', '', ''), ('u2', ?, 'bafz', NULL, 'ipfs_uploaded', '', '')`)
    .run(confirmed, signed)
  const insert = database.prepare(`INSERT INTO upload_transactions
    (tx_hash, learning_id, chain_id, genesis_hash, contract_address, sender, nonce, raw, created_at)
    VALUES (?, ?, 1, '0x', '0x', '0x', 0, '0x', '')`)
  insert.run('0x01', confirmed)
  insert.run('0x02', signed)
  const { published, learnings } = await forgetConversation({ database, home }, CONVERSATION)
  assert.equal(learnings, 3)
  assert.deepEqual(published, [
    { learning_id: confirmed, status: 'confirmed', ipfs_cid: 'bafy', chain_tx_hash: '0x01', transactions: ['0x01'] },
    { learning_id: signed, status: 'ipfs_uploaded', ipfs_cid: 'bafz', chain_tx_hash: null, transactions: ['0x02'] },
  ])
  // Their rows stay, so that the same learning is not published twice.
  assert.equal(database.prepare('SELECT count(*) AS count FROM uploads').get()?.count, 2)
})

test('a job that runs when its conversation is forgotten writes nothing and has no result', async () => {
  const file = files.next()
  await using pipeline = await openExtraction(file)
  const { database, model, mill, validation } = pipeline
  addMessages(database, ['quokkafact by Ann'])
  model.findings = finding('Ann')
  model.before = () => forgetConversation({ database, home }, CONVERSATION)
  await drain(mill, [validation])
  assert.deepEqual(await mill.jobs({ type: SANITIZE_AI_VALIDATION }), [])
  assert.equal(database.prepare('SELECT count(*) AS count FROM sanitization_log').get()?.count, 0)
  assert.doesNotMatch(bytesOf(file), /quokkafact/)
})

// X096
test('a snippet that validation has replaced is in neither the file nor the write-ahead log', async () => {
  const file = files.next()
  await using pipeline = await openExtraction(file)
  const { database, model, run } = pipeline
  addMessages(database, ['by quokkaname', 'x'.repeat(9_000), 'and quokkaname again'])
  model.findings = finding('quokkaname')
  await run()
  assert.doesNotMatch(bytesOf(file), /quokkaname/)
})

test('retention leaves alone what the hook continues while it looks, and what the hook has spooled', async () => {
  const file = files.next()
  await using pipeline = await openExtraction(file)
  const { database, clock } = pipeline
  addMessages(database, ['old'], { nowMs: clock.nowMs() })
  addMessages(database, ['older'], { conversation: OTHER, nowMs: clock.nowMs() })
  await clock.advance('31d')
  const at = new Date(clock.nowMs()).toISOString()
  const message = { id: '01HXZ0000000000000000000CC', conversationId: OTHER, role: 'user', content: 'resumed' } as const
  const folder = writeToSpool([`${file}.spool`], { ...message, version: '1', findings: [], cut: 0, at })
  const hook = openDatabase(file, { nowMs: clock.nowMs() })
  const begin = database.exec.bind(database)
  database.exec = (sql) => {
    database.exec = begin
    // After the old conversations were read, before they are removed.
    hook.prepare('UPDATE conversations SET updated_at = ? WHERE id = ?').run(at, CONVERSATION)
    begin(sql)
  }
  const { conversations, messages, spooled } = await retainConversations(
    { database, clock, home },
    { olderThanDays: 30 },
  )
  hook.close()
  assert.deepEqual([conversations, messages, spooled], [1, 1, 0])
  assert.equal(database.prepare('SELECT id FROM conversations').get()?.id, CONVERSATION)
  assert.equal(existsSync(path.join(folder, `${message.id}.json`)), true)
})

test('a reader of another connection delays the erasure, and that is returned', async () => {
  const file = files.next()
  await using pipeline = await openExtraction(file)
  addMessages(pipeline.database, ['quokkafact'])
  const reader = new DatabaseSync(file)
  reader.exec('BEGIN')
  reader.prepare('SELECT count(*) FROM messages').get()
  const impatient = openDatabase(file, { nowMs: 0, busyMs: 0 })
  const first = await forgetConversation({ database: impatient, home }, CONVERSATION)
  assert.deepEqual([first.messages, first.isErased], [1, false])
  reader.close()
  assert.equal((await forgetConversation({ database: impatient, home }, CONVERSATION)).isErased, true)
  assert.doesNotMatch(bytesOf(file), /quokkafact/)
  impatient.close()
})

test('the hook can write while forgetting waits for a reader of another connection', async () => {
  const file = files.next()
  const database = openDatabase(file, { nowMs: 0 })
  addMessages(database, ['quokkafact'])
  const reader = new DatabaseSync(file)
  reader.exec('BEGIN')
  reader.prepare('SELECT count(*) FROM messages').get()
  const forgetting = forgetConversation({ database, home }, CONVERSATION)
  // It has removed the rows and written the file anew, and waits for the reader.
  const hook = openDatabase(file, { nowMs: 0, busyMs: 0 })
  addMessages(hook, ['wombatfact'], { conversation: OTHER })
  hook.close()
  assert.equal((await forgetting).isErased, false)
  reader.close()
  database.close()
})

test('retention forgets what has not changed for that long, in batches, and nothing else', async () => {
  const file = files.next()
  await using pipeline = await openExtraction(file)
  const { database, clock, mill } = pipeline
  const idOf = (index: number) => `01HXZ0000000000000000000${String(index).padStart(2, '0')}`
  const startMs = clock.nowMs()
  for (let index = 0; index < 45; index += 1) {
    addMessages(database, [`quokkafact ${index}`], { conversation: idOf(index), nowMs: startMs })
  }
  addMessages(database, ['wombatfact'], { conversation: OTHER, nowMs: startMs + 2_000 })
  await clock.advance('30d')
  await clock.advance('1s')
  const { published, ...counts } = await retainConversations({ database, clock, home }, { olderThanDays: 30 })
  assert.deepEqual([counts.conversations, counts.messages, counts.jobs, published], [45, 45, 45, []])
  assert.equal((await mill.jobs()).length, 1)
  assert.doesNotMatch(bytesOf(file), /quokkafact/)
  assert.match(bytesOf(file), /wombatfact/)
  await assert.rejects(retainConversations({ database }, { olderThanDays: -1 }), { code: 'ERR_OPTION_INVALID' })
  await assert.rejects(retainConversations({ database }, { olderThanDays: Number.NaN }), { code: 'ERR_OPTION_INVALID' })
})
