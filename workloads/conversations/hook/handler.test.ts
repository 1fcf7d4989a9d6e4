import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { tempFiles } from '../../../test/fixtures/temp-files.ts'
import { createSanitizer } from '../sanitize/sanitize.ts'
import { openDatabase } from '../store/database.ts'
import { readSecret, snippetHash } from '../store/secret.ts'
import { CONTENT_MAX } from './capture.ts'
import { hookHandler } from './handler.ts'

const files = tempFiles()
const sanitize = createSanitizer()
const CONVERSATION = '01K5XJ7Q2M4R8T0V6W9Y3Z1A5B'

function rig() {
  const file = files.next()
  const database = openDatabase(file, { nowMs: 0 })
  const rows = (sql: string) =>
    database
      .prepare(sql)
      .all()
      .map((row) => ({ ...row }))
  const prompt = (content: string) =>
    hookHandler({ event: 'UserPromptSubmit', conversation_id: CONVERSATION, content }, { database, sanitize })
  return { file, database, rows, prompt }
}

// B14 B183 B11 X127
test('a prompt becomes a sanitised message and one sanitize_ai_validation job', () => {
  const { file, database, rows, prompt } = rig()
  const first = prompt('Test message with potential PII: john@example.com')
  const second = prompt('and another')
  assert.ok(first.stored && second.stored)
  assert.deepEqual(rows('SELECT role, seq, content, validated_at FROM messages ORDER BY seq'), [
    { role: 'user', seq: 1, content: 'Test message with potential PII: [EMAIL]', validated_at: null },
    { role: 'user', seq: 2, content: 'and another', validated_at: null },
  ])
  assert.deepEqual([first.enqueued, second.enqueued], [true, false])
  assert.equal(second.jobId, first.jobId)
  const [job, ...others] = rows('SELECT * FROM job_queue')
  assert.deepEqual(others, [])
  assert.equal(job?.type, 'sanitize_ai_validation')
  assert.equal(job?.priority, 1)
  assert.equal(job?.idempotency_key, `sanitize-ai-validation-${CONVERSATION}`)
  assert.deepEqual(JSON.parse(String(job?.payload)), {
    conversation_id: CONVERSATION,
    message_ids: [first.messageId],
    sanitization_version: rows('SELECT sanitization_version FROM messages')[0]?.sanitization_version,
  })
  database.close()
  assert.equal(readFileSync(file).includes('john@example.com'), false)
})

// X128
test('what was replaced is logged with its HMAC under the local secret', () => {
  const { file, rows, prompt } = rig()
  prompt('a@b.ch')
  assert.deepEqual(
    rows('SELECT category, original_snippet_hash, replacement, detector, confidence FROM sanitization_log'),
    [
      {
        category: 'email',
        original_snippet_hash: snippetHash(readSecret(file), 'a@b.ch'),
        replacement: '[EMAIL]',
        detector: 'rules',
        confidence: 1,
      },
    ],
  )
})

test('a new message makes a validated conversation unvalidated and keeps its other metadata', () => {
  const { database, rows, prompt } = rig()
  prompt('one')
  database.exec(`UPDATE conversations SET metadata = '{"ai_validation_completed":true,"extracted_seq":1}'`)
  prompt('two')
  assert.deepEqual(rows('SELECT metadata FROM conversations'), [
    { metadata: '{"ai_validation_completed":false,"extracted_seq":1}' },
  ])
})

// B12
test('message and job are written together or not at all', () => {
  const { database, rows, prompt } = rig()
  const refuse = (table: string): void =>
    database.exec(`CREATE TRIGGER refuse_${table} BEFORE INSERT ON ${table} BEGIN SELECT RAISE(ABORT, 'refused'); END`)
  refuse('job_queue')
  assert.throws(() => prompt('lost'), /refused/)
  database.exec('DROP TRIGGER refuse_job_queue')
  refuse('messages')
  assert.throws(() => prompt('lost'), /refused/)
  for (const table of ['conversations', 'messages', 'job_queue']) assert.deepEqual(rows(`SELECT * FROM ${table}`), [])
})

test('a long message is cut where a secret across the cut is still replaced, and the metadata counts what is missing', () => {
  const { rows, prompt } = rig()
  const mail = 'jane.doe@example.com'
  prompt(`${'x '.repeat((CONTENT_MAX - 10) / 2)}${mail} ${'y '.repeat(50_000)}`)
  const [row] = rows('SELECT content FROM messages')
  const content = String(row?.content)
  assert.ok(content.length <= CONTENT_MAX && content.length > CONTENT_MAX - 1_000, `${content.length}`)
  assert.doesNotMatch(content, /jane|doe|example/)
  const cut = CONTENT_MAX - 10 + mail.length + 1 + 100_000 - CONTENT_MAX
  assert.deepEqual(rows(`SELECT metadata ->> '$.cut_characters' AS cut FROM conversations`), [{ cut }])
})

test('half a surrogate pair and a null character are stored as SQLite can keep them', () => {
  const { rows, prompt } = rig()
  prompt('a\ud800b\0c')
  assert.deepEqual(rows('SELECT content FROM messages'), [{ content: 'a\ufffdb\0c' }])
})

test('an event without a message stores nothing; broken input is refused', () => {
  const { database, rows } = rig()
  const ignored = hookHandler({ hook_event_name: 'SessionEnd', session_id: 'a' }, { database, sanitize })
  assert.deepEqual(ignored, { stored: false, reason: 'the event brings no message of the conversation' })
  assert.throws(() => hookHandler({ hook_event_name: 'UserPromptSubmit', session_id: 'a' }, { database, sanitize }), {
    code: 'ERR_OPTION_INVALID',
  })
  assert.deepEqual(rows('SELECT * FROM conversations'), [])
})
