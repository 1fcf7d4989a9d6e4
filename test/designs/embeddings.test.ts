/** The embedding queue, whole: started by its one command, with work, a failure, a dead letter and a lost worker. */
import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { temporaryFolder, until } from '../cli/run.ts'
import { json, type ModelServer, modelServer } from '../fixtures/model-server.ts'
import { endLeases, PresetProcess, writeConfig } from './preset-process.ts'

interface EmbeddingServer extends ModelServer {
  /** Texts in the order in which they were asked for. */
  readonly asked: string[]
  /** Answers what was held back, and holds nothing back from now on. */
  release(): void
  /** Nothing is bad from now on. */
  mend(): void
}

/** An embedder behind the API of OpenAI. `held` waits, `flaky` fails once, `bad` is refused for good. */
async function embeddingServer(t: TestContext): Promise<EmbeddingServer> {
  const asked: string[] = []
  const held: (() => void)[] = []
  let [isHeld, isMended] = [true, false]
  const answer = (response: ServerResponse, text: string): void => {
    const embedding = Array.from({ length: 8 }, (_, index) => 1 + (text.charCodeAt(index) || 0))
    json(response, { data: [{ index: 0, embedding }] })
  }
  const server = await modelServer(t, (response, { body }) => {
    const text = String([body.input].flat()[0])
    asked.push(text)
    const isFirst = asked.filter((one) => one === text).length === 1
    if (text.startsWith('bad') && !isMended) json(response, { error: 'no' }, 400)
    else if (text.startsWith('flaky') && isFirst) json(response, { error: 'later' }, 500)
    else if (text.startsWith('held') && isHeld) held.push(() => answer(response, text))
    else answer(response, text)
  })
  const release = (): void => {
    isHeld = false
    for (const one of held.splice(0)) one()
  }
  const mend = (): void => {
    isMended = true
  }
  return Object.assign(server, { asked, release, mend })
}

const version = (entryId: string, versionId: string, content: string) => ({
  ...{ entryType: 'guideline', entryId, versionId, content },
})

// C08 C19 C31 C33 C34
test('millrace start --preset embeddings is the embedding queue with its figures, alerts and endpoints', async (t) => {
  const folder = await temporaryFolder(t)
  const server = await embeddingServer(t)
  const embedder = { kind: 'openai', url: `${server.url}/v1`, model: 'm' }
  const config = await writeConfig(folder, { embedder })
  const file = join(folder, 'queue.db')
  const args = ['--preset', 'embeddings', '--engine', `sqlite:${file}`, '--config', config, '--reap', '500ms']
  const queue = new PresetProcess(t, args)
  await queue.started()
  const stats = () => queue.answer('/api/v1/embeddings/stats')
  const waiting = ({ pending, retrying }: Readonly<Record<string, unknown>>) => Number(pending) + Number(retrying)
  const isIdle = async (): Promise<boolean> => {
    const now = await stats()
    return waiting(now) + Number(now.inFlight) === 0
  }
  const enqueue = (entryId: string, versionId: string, content: string) =>
    queue.answer('/api/v1/embeddings', version(entryId, versionId, content))

  // A dead letter, which the rules find at their next look.
  const { id: worst } = await enqueue('worst', 'v1', 'bad text')
  const failed = await queue.line(({ msg }) => msg === 'Embedding failed permanently')
  assert.deepEqual(
    [failed.level, failed.entryType, failed.entryId, failed.attempts],
    ['error', 'guideline', 'worst', 1],
  )
  await queue.line(({ msg, severity }) => msg === 'Alert: Worker embed-entry final failure' && severity === 'warning')

  // Work: three at once, and of the versions that wait the newest alone.
  for (const entry of ['a', 'b', 'c']) await enqueue(entry, 'v1', `held ${entry}`)
  await until(async () => (await stats()).inFlight === 3)
  const statuses = []
  for (const one of ['v1', 'v2', 'v3']) statuses.push((await enqueue('x', one, `text ${one}`)).status)
  assert.deepEqual(statuses, ['enqueued', 'replaced', 'replaced'])
  await enqueue('y', 'v1', 'flaky y')
  const full = { pending: 2, inFlight: 3, dlqSize: 1, uniqueEntries: 2, retrying: 0 }
  assert.deepEqual(await stats(), full)
  assert.equal(await queue.metric('millrace_embedding_queue_pending'), 2)
  assert.equal(await queue.metric('millrace_embedding_queue_in_flight'), 3)
  assert.equal(await queue.metric('millrace_embedding_queue_dlq_size'), 1)
  assert.equal(await queue.metric('millrace_embedding_queue_unique_entries'), 2)

  // A second process takes what waits, and is lost in the middle of it.
  const second = new PresetProcess(t, [...args, '--no-http', '--no-reap'])
  await second.started()
  await until(() => server.asked.includes('text v3') && server.asked.includes('flaky y'))
  // A failure: the second try comes two seconds later.
  const retried = await second.line(({ msg }) => String(msg).startsWith('Job retried in 2000 ms (attempt 1 of 3)'))
  assert.equal(retried.job_type, 'embed-entry')
  await until(async () => waiting(await stats()) === 0)
  await enqueue('z', 'v1', 'held z')
  await until(() => server.asked.includes('held z'))
  assert.equal((await stats()).inFlight, 4)
  await second.lose()
  server.release()
  await until(async () => (await stats()).inFlight === 1)
  endLeases(file, 'embed-entry')
  await queue.line(({ msg }) => msg === 'Expired leases recovered')
  await until(isIdle)
  assert.equal(await queue.metric('millrace_leases_expired_total', { type: 'embed-entry', outcome: 'retry' }), 1)
  assert.ok(!server.asked.includes('text v1') && !server.asked.includes('text v2'), 'an old version was embedded')

  // What is stored is found; the versions that were queued last are there.
  const { found } = await queue.answer('/api/v1/embeddings/search?text=text%20v3&limit=20')
  const versions = new Map([found].flat().map((one) => [Object(one).entry, Object(one).versionId]))
  assert.deepEqual([versions.size, versions.get('guideline:x'), versions.get('guideline:z')], [6, 'v3', 'v1'])

  await queue.line(({ msg }) => String(msg).startsWith('Alert DeadLetters'))
  const { status, details } = await queue.answer('/health')
  assert.deepEqual([status, Object(details).deadLetterCount], ['degraded', 1])

  // The operator repairs it and puts the letter back.
  server.mend()
  const replayed = await queue.fetch(`/api/v1/dead-letters/${worst}/replay`, { reason: 'the embedder is back' })
  assert.equal(replayed.status, 200, await replayed.text())
  await until(
    async () => (await stats()).dlqSize === 0 && server.asked.filter((text) => text === 'bad text').length === 2,
  )
  await queue.stop()
})

// C12
test('in memory it works as in the design, without a configuration, and nothing waits after a restart', async (t) => {
  const cwd = await temporaryFolder(t)
  const start = async (): Promise<PresetProcess> => {
    const started = new PresetProcess(t, ['--preset', 'embeddings', '--engine', 'memory:'], { cwd })
    await started.started()
    return started
  }
  const first = await start()
  await first.line(({ msg }) => String(msg).startsWith('The embedder counts words'))
  await first.answer('/api/v1/embeddings', version('7', 'v1', 'Restart the worker after a deployment.'))
  const search = '/api/v1/embeddings/search?text=worker%20restarts'
  await until(async () => JSON.stringify(await first.answer(search)).includes('guideline:7'))
  // Nothing claims it any more when the process ends.
  await first.answer('/api/v1/queues/embed-entry/pause', {})
  await first.line(({ msg }) => msg === 'Types are paused')
  await first.answer('/api/v1/embeddings', version('8', 'v1', 'It waits.'))
  assert.equal((await first.answer('/api/v1/embeddings/stats')).pending, 1)
  await first.lose()

  const second = await start()
  const nothing = { pending: 0, inFlight: 0, dlqSize: 0, uniqueEntries: 0, retrying: 0 }
  assert.deepEqual(await second.answer('/api/v1/embeddings/stats'), nothing)
  // The vectors are in a file.
  assert.match(JSON.stringify(await second.answer(search)), /guideline:7/)
  await second.stop()
})
