import assert from 'node:assert/strict'
import { test } from 'node:test'
import { drain } from '../../../src/testing/drain.ts'
import {
  addMessages,
  CONVERSATION,
  contents,
  finding,
  findingRows,
  metadataOf,
  openValidation,
} from '../../../test/fixtures/conversations.ts'
import { tempFiles } from '../../../test/fixtures/temp-files.ts'
import { snippetHash } from '../store/secret.ts'
import { EXTRACT_LEARNING, SANITIZE_AI_VALIDATION } from './contract.ts'

const files = tempFiles()
const OTHER = '01HXZ0000000000000000000BB'

// B55 B56 B57 B103 B104 B105 B195 X096
test('what the model finds is replaced in the message and logged, with a hash instead of the snippet', async () => {
  await using pipeline = await openValidation(files.next())
  const { database, model, run, results, parts } = pipeline
  const [id] = addMessages(database, ['let ann_keller = 1; ask ann_keller or [EMAIL]'])
  model.findings = finding('ann_keller', 'Person Name')
  await run()
  assert.deepEqual(model.asked, [[{ id, role: 'user', content: 'let ann_keller = 1; ask ann_keller or [EMAIL]' }]])
  assert.deepEqual(await results(), [{ success: true, findings: 1 }])
  assert.deepEqual(contents(database), ['let [PERSON_NAME] = 1; ask [PERSON_NAME] or [EMAIL]'])
  const [row, ...others] = findingRows(database)
  assert.deepEqual(others, [])
  assert.match(String(row?.id), /^[0-9A-HJKMNP-TV-Z]{26}$/)
  assert.deepEqual(
    { ...row, id: null },
    {
      ...{ id: null, conversation_id: CONVERSATION, message_id: id, category: 'person_name' },
      original_snippet_hash: snippetHash(parts.secret, 'ann_keller'),
      ...{ replacement: '[PERSON_NAME]', detector: 'ai', confidence: 0.9, created_at: '2026-01-01T00:00:00.000Z' },
    },
  )
})

// B58 B101 B102
test('validation marks the conversation, enqueues the extraction, and is skipped the second time', async () => {
  await using pipeline = await openValidation(files.next())
  const { database, model, mill, clock, run, results } = pipeline
  addMessages(database, ['hello'])
  database.exec(`UPDATE conversations SET metadata = json_set(metadata, '$.mine', 7)`)
  await clock.advance('1s')
  await run()
  const now = '2026-01-01T00:00:01.000Z'
  assert.deepEqual(metadataOf(database), { mine: 7, ai_validation_completed: true, ai_validation_timestamp: now })
  assert.equal(database.prepare('SELECT updated_at FROM conversations').get()?.updated_at, now)
  const [extraction] = await mill.jobs({ type: EXTRACT_LEARNING })
  assert.deepEqual(JSON.parse(extraction?.payload ?? ''), {
    conversation_id: CONVERSATION,
    min_confidence: 0.7,
    categories: [],
  })
  await mill.enqueue(pipeline.validation, {
    ...{ conversation_id: CONVERSATION, message_ids: [], sanitization_version: 'test-1' },
  })
  await run()
  assert.deepEqual(await results(), [
    { success: true, findings: 0 },
    { skipped: true, reason: 'already-validated' },
  ])
  assert.equal(model.asked.length, 1)
})

// B102 X096 X123
// X123
test('a missing conversation is a dead letter after one attempt', async () => {
  await using pipeline = await openValidation(files.next())
  const { database, mill, run } = pipeline
  addMessages(database, ['x'])
  database.exec('DELETE FROM conversations')
  await run()
  const [job] = await mill.jobs({ type: SANITIZE_AI_VALIDATION })
  assert.deepEqual([job?.state, job?.attempt, job?.error?.code], ['dead_letter', 1, 'ERR_NON_RETRYABLE'])
})

// X123
test('messages of other conversations are ignored, and that is logged', async () => {
  await using pipeline = await openValidation(files.next())
  const { database, model, validation, mill, lines } = pipeline
  const [other = ''] = addMessages(database, ['of another one'], { conversation: OTHER })
  const [own = ''] = addMessages(database, ['mine'])
  database.exec('DELETE FROM job_queue')
  await mill.enqueue(validation, {
    ...{ conversation_id: CONVERSATION, message_ids: [other, own, 'none'], sanitization_version: 'test-1' },
  })
  await drain(mill, [validation])
  assert.deepEqual(
    model.asked.flat().map(({ id }) => id),
    [own],
  )
  const warning = lines.find(({ level }) => level === 'warn')
  assert.equal(warning?.text, 'Messages that are not of the conversation were ignored')
  assert.equal(warning?.fields.count, 2)
})

// X123
// X096
// X123
// X096
test('a finding whose snippet is not in its message is open; a reported placeholder is none', async () => {
  await using pipeline = await openValidation(files.next())
  const { database, model, run, results, lines } = pipeline
  const [id] = addMessages(database, ['ask [EMAIL]'])
  model.findings = () => [
    { message_id: id, snippet: 'Ann', category: 'name', confidence: 0.6 },
    { message_id: id, snippet: '[EMAIL]', category: 'email', confidence: 0.6 },
  ]
  await run()
  assert.deepEqual(await results(), [{ success: true, findings: 1 }])
  assert.deepEqual(
    findingRows(database).map(({ replacement }) => replacement),
    [null],
  )
  assert.ok(lines.some(({ level, fields }) => level === 'warn' && fields.open === 1))
})

test('the rules run once more, with the version that is in use now', async () => {
  await using pipeline = await openValidation(files.next())
  const { database, run, results } = pipeline
  addMessages(database, ['written by an older hook: a@b.ch'])
  await run()
  assert.deepEqual(contents(database), ['written by an older hook: [EMAIL]'])
  assert.deepEqual(await results(), [{ success: true, findings: 1 }])
  assert.deepEqual(
    findingRows(database).map(({ detector, category }) => [detector, category]),
    [['rules', 'email']],
  )
  assert.equal(database.prepare('SELECT sanitization_version AS v FROM messages').get()?.v, 'test-1')
})

// B60 B61 B62
test('the row of the job has priority 1, three attempts and the key of the conversation', async () => {
  await using pipeline = await openValidation(files.next())
  addMessages(pipeline.database, ['x'])
  const row = pipeline.database.prepare('SELECT priority, max_retries, idempotency_key FROM job_queue').get()
  assert.deepEqual(
    { ...row },
    { priority: 1, max_retries: 3, idempotency_key: `sanitize-ai-validation-${CONVERSATION}` },
  )
})

// B54 B189 B190 B191
test('a payload that does not match the schema reaches no handler', async () => {
  await using pipeline = await openValidation(files.next())
  const { mill, database, model, run } = pipeline
  const good = { conversation_id: CONVERSATION, message_ids: ['m'], sanitization_version: 'v1' }
  const bad: readonly object[] = [
    { ...good, conversation_id: CONVERSATION.toLowerCase() },
    { ...good, conversation_id: `${CONVERSATION}A` },
    { ...good, message_ids: [1] },
    { ...good, message_ids: 'm' },
    { ...good, sanitization_version: 1 },
    { message_ids: ['m'], sanitization_version: 'v1' },
    { ...good, content: 'raw' },
  ]
  for (const [index, payload] of bad.entries()) {
    const insert = `INSERT INTO job_queue (id, type, payload, scheduled_at, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?)`
    const now = '2026-01-01T00:00:00.000Z'
    database.prepare(insert).run(`bad-${index}`, SANITIZE_AI_VALIDATION, JSON.stringify(payload), now, now, now)
  }
  assert.deepEqual(await run(), { complete: 0, retry: 0, dead: bad.length, release: 0 })
  for (const { error } of await mill.jobs({ type: SANITIZE_AI_VALIDATION })) {
    assert.match(String(error?.message), /^Invalid payload:/)
  }
  assert.deepEqual(model.asked, [])
})
