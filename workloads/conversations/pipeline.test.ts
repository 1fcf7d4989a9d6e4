import assert from 'node:assert/strict'
import { once } from 'node:events'
import { existsSync, statSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { test } from 'node:test'
import { drain, settled } from '../../src/testing/drain.ts'
import { finding, learning, ScriptedModel } from '../../test/fixtures/conversations.ts'
import { tempFiles } from '../../test/fixtures/temp-files.ts'
import { spoolFolders, writeToSpool } from './hook/spool.ts'
import { EXTRACT_LEARNING, MINE_UPLOAD, SANITIZE_AI_VALIDATION } from './jobs/contract.ts'
import { openConversations, type PipelineOptions } from './pipeline.ts'

const files = tempFiles()
const home = files.folder
const CONVERSATION = '01HXZ0000000000000000000AA'
/** A port at which nothing listens. */
const server = createServer().listen(0, '127.0.0.1')
await once(server, 'listening')
const { port } = server.address() as AddressInfo
server.close()
const UPLOAD = {
  ...{ ipfsEndpoint: `http://127.0.0.1:${port}`, rpcUrl: `http://127.0.0.1:${port}`, chainId: 31337 },
  ...{ contractAddress: `0x${'ab'.repeat(20)}`, privateKeyRef: 'env:KEY' },
}
const prompt = (content: string) => ({ event: 'UserPromptSubmit', conversation_id: CONVERSATION, content })

/** The first job of the type, once there is one. */
async function jobOf(conversations: Awaited<ReturnType<typeof openConversations>>, type: string) {
  const [job] = await conversations.mill.jobs({ type })
  assert.ok(job !== undefined, `a job of ${type}`)
  return job.id
}

// B53 B60 B61 B70 B71
test('there are exactly three jobs, with the priorities, attempts and backoff of the pipeline', async () => {
  await using conversations = await openConversations({ engine: 'sqlite::memory:' })
  assert.deepEqual(
    conversations.jobs.map(({ type, priority, attempts, backoff }) => [type, priority, attempts, backoff.kind]),
    [
      [SANITIZE_AI_VALIDATION, 1, 3, 'exponential'],
      [EXTRACT_LEARNING, 5, 3, 'exponential'],
      [MINE_UPLOAD, 10, 5, 'exponential'],
    ],
  )
})

// B55 B184 B185 B186 B187 B195
test('a prompt goes from the hook to a learning and its upload job, and no raw text is stored on the way', async () => {
  const file = files.next()
  const model = new ScriptedModel()
  model.findings = finding('Annalena')
  model.learnings = ([message]) => [
    learning({ content: `Learnt: ${message?.content}`, source_message_ids: [String(message?.id)] }),
  ]
  await using conversations = await openConversations({ engine: `sqlite:${file}`, model, upload: UPLOAD, home })
  const { mill, hookHandler, learnings } = conversations
  const stored = hookHandler(prompt('Annalena (ann@example.com) says: warm the cache first'))
  assert.equal(stored.stored, true)
  await conversations.work({ concurrency: 2 })
  const validated = await settled(mill, await jobOf(conversations, SANITIZE_AI_VALIDATION), { timeout: '5s' })
  assert.deepEqual([validated.state, validated.result], ['completed', { success: true, findings: 1 }])
  const extracted = await settled(mill, await jobOf(conversations, EXTRACT_LEARNING), { timeout: '10s' })
  assert.equal(extracted.state, 'completed')
  const [found] = learnings.findByConversation(CONVERSATION)
  assert.equal(found?.content, 'Learnt: [PERSON_NAME] ([EMAIL]) says: warm the cache first')
  assert.equal(learnings.search('cache').length, 1)
  assert.equal((await mill.jobs({ type: MINE_UPLOAD })).length, 1)
  const rows = (table: string) => JSON.stringify(conversations.database.prepare(`SELECT * FROM ${table}`).all())
  for (const table of ['messages', 'sanitization_log', 'learnings', 'job_queue', 'job_events']) {
    assert.doesNotMatch(rows(table), /ann@example|Annalena/, table)
  }
})

// B186
test('without any setting the local model validates and extracts, and nothing is uploaded', async () => {
  await using conversations = await openConversations({ engine: `sqlite:${files.next()}`, home })
  const { mill, jobs, hookHandler, learnings } = conversations
  hookHandler(prompt('The fix was to close the pool before exit, because open sockets keep the process alive.'))
  hookHandler({ ...prompt('We decided to use one connection for each thread from now on.'), role: 'assistant' })
  await drain(mill, jobs)
  const states = (await mill.jobs()).map(({ type, state }) => [type, state])
  assert.deepEqual(states.toSorted(), [
    [EXTRACT_LEARNING, 'completed'],
    [SANITIZE_AI_VALIDATION, 'completed'],
  ])
  assert.ok(learnings.findByConversation(CONVERSATION).length > 0)
})

test('work takes in what the hook has spooled, and forgetting removes all of it', async () => {
  const file = files.next()
  await using conversations = await openConversations({ engine: `sqlite:${file}`, home })
  const about = { id: '01HXZ0000000000000000000CC', conversationId: CONVERSATION, version: '1', findings: [], cut: 0 }
  const at = '2026-01-01T00:00:00.000Z'
  writeToSpool(spoolFolders(file, home), { ...about, role: 'user', content: 'spooled text', at })
  await conversations.work()
  assert.deepEqual(await conversations.takeInSpool(), { takenIn: 0, known: 0, unreadable: [] })
  const done = await settled(conversations.mill, await jobOf(conversations, SANITIZE_AI_VALIDATION))
  assert.equal(done.state, 'completed')
  const { messages, conversations: forgotten } = await conversations.forget(CONVERSATION)
  assert.deepEqual([messages, forgotten], [1, 1])
})

test('the pipeline with a database in memory works on one connection', async () => {
  await using conversations = await openConversations({ engine: 'sqlite::memory:' })
  conversations.hookHandler(prompt('hello'))
  const { complete } = await drain(conversations.mill, conversations.jobs)
  assert.equal(complete, 2)
  const { messages } = await conversations.retain({ olderThanDays: 0 })
  assert.ok(messages <= 1)
})

// X128
test('the secret is beside the database, for its owner only', async () => {
  const file = files.next()
  await using _ = await openConversations({ engine: `sqlite:${file}`, home })
  assert.equal(statSync(`${file}.secret`).mode & 0o777, 0o600)
})

// X102
test('the jobs reach only the endpoints of the configuration', async () => {
  await using conversations = await openConversations({ engine: 'sqlite::memory:', upload: UPLOAD })
  await assert.rejects(conversations.parts.fetch('http://127.0.0.2/'), { code: 'ERR_NON_RETRYABLE' })
  await assert.rejects(conversations.parts.fetch(UPLOAD.rpcUrl), { code: 'ERR_OFFLINE' })
})

test('unknown options, other engines and wrong settings are refused before a file is created', async () => {
  const file = files.next()
  const wrong: readonly (readonly [object, RegExp])[] = [
    [{ models: null }, /'models' is not an option of openPipeline; did you mean 'model'/],
    [{ engine: 'postgres://localhost/x' }, /conversations are kept in SQLite, not in postgres/],
    [{ upload: { ...UPLOAD, privateKeyRef: 'abc' } }, /upload\.privateKeyRef/],
    [{ retentionDays: -1 }, /retentionDays/],
    [{ model: { kind: 'none' } }, /model/],
  ]
  for (const [options, message] of wrong) {
    // What the types refuse is refused at runtime too.
    const given = { engine: `sqlite:${file}`, ...options } as PipelineOptions
    await assert.rejects(openConversations(given), { code: 'ERR_OPTION_INVALID', message })
  }
  assert.equal(existsSync(file), false)
})

test('a file that is no database gets an error that says so', async () => {
  const file = files.next()
  writeFileSync(file, 'This is no database. '.repeat(300))
  await assert.rejects(openConversations({ engine: `sqlite:${file}` }), { code: 'ERR_STORAGE_NOT_A_DATABASE' })
})
