/** The real adapters in the real jobs: what the queue does when a model's server is away, busy, hostile or right. */
import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { type TestContext, test } from 'node:test'
import { addMessages, contents, findingRows, metadataOf, openExtraction } from '../../../test/fixtures/conversations.ts'
import {
  anthropicDialect,
  type Dialect,
  json,
  type ModelRequest,
  modelServer,
  openAiDialect,
} from '../../../test/fixtures/model-server.ts'
import { tempFiles } from '../../../test/fixtures/temp-files.ts'
import { approvedFetch } from '../../language-models/approved-fetch.ts'
import { EXTRACT_LEARNING, SANITIZE_AI_VALIDATION } from '../jobs/contract.ts'
import { modelFrom } from './config.ts'

const files = tempFiles()
const PROMPT = 'const john_smith_password = read(). The fix was to raise busy_timeout to five seconds.'

async function staged(
  t: TestContext,
  dialect: Dialect,
  answer: (response: ServerResponse, request: ModelRequest, count: number) => void,
) {
  const server = await modelServer(t, answer)
  const config = { kind: dialect.kind, url: server.url + dialect.base, model: 'm', keyRef: 'env:KEY' }
  const model = modelFrom(config, { env: { KEY: 'sk-hidden' } })
  const fetch = approvedFetch({ endpoints: [config.url] })
  const pipeline = await openExtraction(files.next(), { model, fetch })
  const ids = addMessages(pipeline.database, [PROMPT])
  const job = async (type: string) => (await pipeline.mill.jobs({ type }))[0]
  return { ...server, ...pipeline, fetch, id: ids[0] ?? '', job }
}

/** Answers as a good model would, whichever of the two questions is asked. */
function answered(dialect: Dialect, request: ModelRequest, id: string): unknown {
  const finding = { message_id: id, snippet: 'john_smith', category: 'name', confidence: 0.9 }
  const learning = {
    ...{
      category: 'fix',
      title: 'Raise busy_timeout',
      content: 'Raise busy_timeout to five seconds.',
      confidence: 0.9,
    },
    ...{ tags: ['sqlite'], source_message_ids: [id] },
  }
  const isFirst = dialect.system(request).includes('"findings"')
  return dialect.said(JSON.stringify(isFirst ? { findings: [finding] } : { learnings: [learning] }))
}

for (const dialect of [anthropicDialect, openAiDialect]) {
  // B06 B56 X101
  test(`${dialect.kind}: jobs wait without using an attempt while the server is away, and complete when it is back`, async (t) => {
    let isAway = true
    let asked = ''
    await using stage = await staged(t, dialect, (response, request) => {
      if (isAway) return void response.destroy()
      json(response, answered(dialect, request, asked))
    })
    asked = stage.id
    // More often than the job has attempts.
    for (let round = 1; round <= 4; round += 1) {
      await stage.run()
      const job = await stage.job(SANITIZE_AI_VALIDATION)
      assert.deepEqual([job?.state, job?.attempt], ['queued', 0])
      await stage.clock.advance('60s')
    }
    isAway = false
    await stage.run()
    assert.equal((await stage.job(SANITIZE_AI_VALIDATION))?.state, 'completed')
    assert.deepEqual(contents(stage.database), [PROMPT.replace('john_smith', '[NAME]')])
    const [row, ...rest] = findingRows(stage.database)
    assert.deepEqual([row?.category, row?.detector, row?.message_id, rest], ['name', 'ai', stage.id, []])
    assert.equal((await stage.job(EXTRACT_LEARNING))?.state, 'completed')
    assert.deepEqual(
      stage.rows().map(({ title }) => title),
      ['Raise busy_timeout'],
    )
  })
}

test('a server that is busy decides when the job is retried, and a refused key ends it with what to do', async (t) => {
  const statuses = [429, 401]
  await using stage = await staged(t, anthropicDialect, (response, _request, count) => {
    response.setHeader('retry-after', '7')
    json(response, { type: 'error', error: { type: 'some_error', message: PROMPT } }, statuses[count - 1])
  })
  await stage.run()
  await stage.clock.advance('6999ms')
  await stage.run()
  assert.equal(stage.requests.length, 1)
  await stage.clock.advance('1ms')
  await stage.run()
  const job = await stage.job(SANITIZE_AI_VALIDATION)
  assert.equal(job?.state, 'dead_letter')
  assert.match(job.error?.message ?? '', /401 \(some_error\); check env:KEY and replay the job/)
  assert.equal(metadataOf(stage.database).ai_validation_completed, undefined)
  assert.doesNotMatch(JSON.stringify([job, stage.lines]), /john_smith|hidden/)
})

// B196
test('an answer of the model cannot send the job anywhere else', async (t) => {
  const other = await modelServer(t, (response) => json(response, {}))
  await using stage = await staged(t, openAiDialect, (response) => {
    response.writeHead(307, { location: `${other.url}/v1/chat/completions` }).end()
  })
  await stage.run()
  const job = await stage.job(SANITIZE_AI_VALIDATION)
  assert.equal(job?.state, 'dead_letter')
  assert.match(job.error?.message ?? '', /was refused: it answered with a redirect/)
  assert.equal(stage.fetch.refused, 1)
  assert.deepEqual(other.requests, [])
})

// B56
test('the local model finds the name and the learning without any request', async () => {
  await using pipeline = await openExtraction(files.next(), { model: modelFrom(undefined) })
  addMessages(pipeline.database, [PROMPT])
  await pipeline.run()
  assert.deepEqual(contents(pipeline.database), [PROMPT.replace('john_smith', '[NAME]')])
  assert.deepEqual(
    findingRows(pipeline.database).map(({ category, detector }) => [category, detector]),
    [['name', 'ai']],
  )
  assert.deepEqual(
    pipeline.rows().map(({ category, title }) => [category, title]),
    [['fix', 'The fix was to raise busy_timeout to five seconds']],
  )
})
