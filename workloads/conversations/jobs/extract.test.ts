import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import { drain } from '../../../src/testing/drain.ts'
import {
  addMessages,
  CONVERSATION,
  finding,
  learning,
  metadataOf,
  oneEach,
  openExtraction,
} from '../../../test/fixtures/conversations.ts'
import { tempFiles } from '../../../test/fixtures/temp-files.ts'
import type { ModelLearning } from '../models/model.ts'
import { EXTRACT_LEARNING, MINE_UPLOAD } from './contract.ts'

const files = tempFiles()
const OTHER = '01HXZ0000000000000000000BB'
const UPLOAD = {
  ipfsEndpoint: 'http://127.0.0.1:5001',
  rpcUrl: 'http://127.0.0.1:8545',
  chainId: 31337,
  contractAddress: `0x${'ab'.repeat(20)}`,
  privateKeyRef: 'env:KEY',
}

// B64 B66 B108 B109 B111
test('learnings of a validated conversation are stored with hash, tags and sources, and found by their words', async () => {
  await using pipeline = await openExtraction(files.next())
  const { database, model, run, results, rows } = pipeline
  const [id = ''] = addMessages(database, ['how do I measure?'])
  model.learnings = () => [learning({ source_message_ids: [id] })]
  await run()
  assert.deepEqual(await results(), [{ success: true, learnings: 1, duplicates: 0, dropped: 0 }])
  const [row] = rows()
  assert.match(String(row?.id), /^[0-9A-HJKMNP-TV-Z]{26}$/)
  const content = 'Warm the cache before you measure.'
  assert.deepEqual(
    { ...row, id: null },
    {
      ...{ id: null, conversation_id: CONVERSATION, category: 'debugging', title: 'Cold caches', content },
      ...{ confidence: 0.9, tags: '["cache"]', source_message_ids: JSON.stringify([id]) },
      dedupe_hash: createHash('sha256').update(`debugging:${content}`).digest('hex'),
      created_at: '2026-01-01T00:00:00.000Z',
    },
  )
  const found = database.prepare(`SELECT title FROM learnings_fts WHERE learnings_fts MATCH 'warm'`).all()
  assert.deepEqual(
    found.map(({ title }) => title),
    ['Cold caches'],
  )
})

// B65 B110 X098
test('a duplicate is skipped and counted, and the others are stored', async () => {
  await using pipeline = await openExtraction(files.next())
  const { database, model, run, results, rows } = pipeline
  const [id = ''] = addMessages(database, ['x'])
  const of = (content: string) => learning({ content, source_message_ids: [id] })
  model.learnings = () => [of('one'), of('one'), of('two')]
  await run()
  assert.deepEqual(await results(), [{ success: true, learnings: 2, duplicates: 1, dropped: 0 }])
  addMessages(database, ['y'], { conversation: OTHER })
  model.learnings = ([message]) => [learning({ content: 'one', source_message_ids: [String(message?.id)] })]
  await run()
  assert.deepEqual((await results()).at(-1), { success: true, learnings: 0, duplicates: 1, dropped: 0 })
  assert.equal(rows().length, 2)
})

// B68 X097
test('learnings below the threshold, of other categories or without a new source are dropped and counted', async () => {
  await using pipeline = await openExtraction(files.next(), {
    extract: { minConfidence: 0.8, categories: ['debugging'] },
  })
  const { database, model, run, results, rows } = pipeline
  const [id = ''] = addMessages(database, ['x'])
  const of = (change: Partial<ModelLearning>) => learning({ source_message_ids: [id], ...change })
  model.learnings = () => [
    of({ content: 'kept', confidence: 0.8 }),
    of({ content: 'too unsure', confidence: 0.79 }),
    of({ content: 'other', category: 'cooking' }),
    of({ content: 'from nowhere', source_message_ids: [] }),
  ]
  await run()
  assert.deepEqual(await results(), [{ success: true, learnings: 1, duplicates: 0, dropped: 3 }])
  assert.deepEqual(
    rows().map(({ content }) => content),
    ['kept'],
  )
})

// B67 X097
test('a second run finds the marker and asks nothing; new messages are extracted with the earlier ones as context', async () => {
  await using pipeline = await openExtraction(files.next())
  const { database, model, run, mill, extraction, results, rows } = pipeline
  const [first = ''] = addMessages(database, ['one'])
  model.learnings = oneEach
  await run()
  assert.equal(metadataOf(database).extracted_seq, 1)
  const asked = model.asked.length
  await mill.enqueue(extraction, { conversation_id: CONVERSATION, min_confidence: 0.7, categories: [] })
  await drain(mill, [extraction])
  assert.deepEqual((await results()).at(-1), { skipped: true, reason: 'already-extracted' })
  assert.equal(model.asked.length, asked)
  const [second = ''] = addMessages(database, ['two'])
  await run()
  assert.deepEqual(
    model.asked.at(-1)?.map(({ id }) => id),
    [first, second],
  )
  assert.deepEqual((await results()).at(-1), { success: true, learnings: 1, duplicates: 0, dropped: 1 })
  assert.deepEqual(
    rows().map(({ content }) => content),
    ['about one', 'about two'],
  )
})

// X096
// X097
// X096
test('titles, contents, categories and tags are sanitised once more', async () => {
  await using pipeline = await openExtraction(files.next())
  const { database, model, run, rows } = pipeline
  const [id = ''] = addMessages(database, ['x'])
  const mail = 'ann@lee.ch'
  model.learnings = () => [
    learning({
      category: `c ${mail}`,
      title: `t ${mail}`,
      content: `x ${mail}`,
      tags: [mail],
      source_message_ids: [id],
    }),
  ]
  await run()
  const [row] = rows()
  assert.deepEqual([row?.category, row?.title, row?.content], ['c [EMAIL]', 't [EMAIL]', 'x [EMAIL]'])
  assert.equal(row?.tags, '["[EMAIL]"]')
})

// B74
test('the payload of an upload has no access key that a URL of the configuration holds', async () => {
  const upload = {
    ...UPLOAD,
    rpcUrl: 'https://rpc.example/v3/secret-path?key=secret-query',
    ipfsEndpoint: 'https://ipfs.example/secret-path',
  }
  await using pipeline = await openExtraction(files.next(), { upload })
  addMessages(pipeline.database, ['one'])
  pipeline.model.learnings = oneEach
  await pipeline.run()
  const [job] = await pipeline.mill.jobs({ type: MINE_UPLOAD })
  assert.doesNotMatch(String(job?.payload), /secret/)
  assert.equal(JSON.parse(String(job?.payload)).chain_config.rpc_url, 'https://rpc.example')
})

// B187 X102
test('each new learning gets one upload with the configured endpoints; without the setting there is none', async () => {
  await using pipeline = await openExtraction(files.next(), { upload: UPLOAD })
  const { database, model, run, rows, mill } = pipeline
  addMessages(database, ['one', 'two'])
  model.learnings = oneEach
  await run()
  const jobs = await mill.jobs({ type: MINE_UPLOAD })
  assert.deepEqual(
    jobs.map(({ payload }) => JSON.parse(payload)).toSorted((a, b) => (a.learning_id < b.learning_id ? -1 : 1)),
    rows().map(({ id }) => ({
      learning_id: id,
      ipfs_endpoint: UPLOAD.ipfsEndpoint,
      chain_config: {
        ...{ rpc_url: UPLOAD.rpcUrl, contract_address: UPLOAD.contractAddress, private_key_ref: UPLOAD.privateKeyRef },
      },
    })),
  )
  await using without = await openExtraction(files.next())
  addMessages(without.database, ['one'])
  without.model.learnings = oneEach
  await without.run()
  assert.deepEqual([without.rows().length, await without.mill.jobs({ type: MINE_UPLOAD })], [1, []])
})

// X096
test('an open finding of the conversation stops its uploads, and that is logged', async () => {
  await using pipeline = await openExtraction(files.next(), { upload: UPLOAD })
  const { database, model, run, rows, mill, lines } = pipeline
  const [id = ''] = addMessages(database, ['one'])
  model.findings = () => [{ message_id: id, snippet: 'not there', category: 'name', confidence: 1 }]
  model.learnings = oneEach
  await run()
  assert.equal(rows().length, 1)
  assert.deepEqual(await mill.jobs({ type: MINE_UPLOAD }), [])
  assert.ok(lines.some(({ level, fields }) => level === 'warn' && fields.held === 1))
})

// X096
test('learnings are extracted from the text in which findings are replaced', async () => {
  await using pipeline = await openExtraction(files.next())
  const { database, model, run, rows } = pipeline
  addMessages(database, ['by Ann'])
  model.findings = finding('Ann')
  model.learnings = oneEach
  await run()
  assert.deepEqual(
    rows().map(({ content }) => content),
    ['about by [PERSON_NAME]'],
  )
})

// B63 B70 B71 B72
test('its payload is checked, and its row has priority 5, three attempts and the key of the conversation', async () => {
  await using pipeline = await openExtraction(files.next())
  const { database, mill, validation, extraction } = pipeline
  addMessages(database, ['one'])
  await drain(mill, [validation])
  const row = database
    .prepare(`SELECT priority, max_retries, idempotency_key FROM job_queue WHERE type = ?`)
    .get(EXTRACT_LEARNING)
  assert.deepEqual({ ...row }, { priority: 5, max_retries: 3, idempotency_key: `extract-learning-${CONVERSATION}` })
  const good = { conversation_id: CONVERSATION, min_confidence: 0.5, categories: ['debugging'] }
  await mill.enqueue(extraction, good)
  const wrong: readonly object[] = [
    { ...good, min_confidence: 1.1 },
    { ...good, min_confidence: -0.1 },
    { ...good, min_confidence: '0.5' },
    { ...good, categories: 'debugging' },
    { ...good, categories: [1] },
    { ...good, conversation_id: 'x' },
  ]
  for (const payload of wrong) {
    // The schema refuses at runtime what the types refuse already.
    await assert.rejects(mill.enqueue(extraction, payload as typeof good), { code: 'ERR_PAYLOAD_INVALID' })
  }
})
