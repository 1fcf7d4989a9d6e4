import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { defineJob, NonRetryable, openDesk } from '../../../src/index.ts'
import { capturingLog } from '../../../src/testing/capture.ts'
import { drain, type LogLine, openForTest } from '../../../src/testing/index.ts'
import { tempFiles } from '../../../test/fixtures/temp-files.ts'
import { hashEmbedder } from '../embedders/hash.ts'
import type { EmbeddingInput } from '../entry.ts'
import { openVectorStore } from '../vectors/store.ts'
import { obsoleteLetters } from './obsolete.ts'
import { EmbeddingService, queueStats } from './queue.ts'

const files = tempFiles()

const version = (versionId: string, content: string, seq?: number): EmbeddingInput => ({
  ...{ entryType: 'guideline', entryId: '7', versionId, content },
  ...(seq !== undefined && { seq }),
})

/** A service on a mill in memory, whose embedder refuses texts that begin with `bad`. */
async function rig(t: TestContext) {
  const tested = await openForTest()
  t.after(() => tested.mill.close())
  const vectors = await openVectorStore(`sqlite:${files.next()}`)
  t.after(() => vectors.close())
  const lines: LogLine[] = []
  const { embedBatch, ...words } = hashEmbedder({ dimensions: 16 })
  const embedder = {
    ...words,
    embedBatch: async (texts: readonly string[]) => {
      if (texts.some((text) => text.startsWith('bad'))) throw new NonRetryable('refused')
      return embedBatch(texts)
    },
  }
  const parts = { embedder, vectors, settings: {}, clock: tested.clock, log: capturingLog(lines) }
  const service = new EmbeddingService(parts)
  service.attach(tested.mill)
  const enqueue = (input: EmbeddingInput) => service.enqueue(tested.mill, input)
  return { ...tested, service, enqueue, lines, parts, work: () => drain(tested.mill, [service.job]) }
}

test('the newest version of an entry is embedded; an older one is stale, and a seq of the time grows', async (t) => {
  const { service, enqueue, work, mill } = await rig(t)
  const [first, second] = [await enqueue(version('v1', 'one')), await enqueue(version('v2', 'two'))]
  assert.deepEqual([first.status, second.status, second.seq - first.seq], ['enqueued', 'replaced', 1])
  assert.equal((await enqueue(version('v0', 'none', 5))).status, 'stale')
  assert.deepEqual(await queueStats(mill.engine), {
    ...{ pending: 1, inFlight: 0, dlqSize: 0, uniqueEntries: 1, retrying: 0 },
  })
  await work()
  assert.deepEqual(await service.store.stored([{ entryType: 'guideline', entryId: '7' }]), [
    { seq: second.seq, versionId: 'v2' },
  ])
  assert.deepEqual(
    (await service.search('two', { limit: 5 })).map(({ entry, versionId }) => [entry, versionId]),
    [['guideline:7', 'v2']],
  )
  assert.deepEqual(await service.search('two', { limit: 5, entryType: 'tool' }), [])
})

// C31
test('what fails for good is logged with its entry, also where a payload is none', async (t) => {
  const { enqueue, work, mill, lines } = await rig(t)
  await enqueue(version('v1', 'bad'))
  const { id } = await mill.enqueue(defineJob({ type: 'embed-entry' }), { entryId: 7 })
  await work()
  const told = () => lines.filter(({ text }) => text === 'Embedding failed permanently')
  // It looks the job up first.
  while (told().length < 2) await turn()
  const failures = told().map(({ fields }) => fields)
  assert.deepEqual(
    failures.toSorted((one, other) => String(one.error).localeCompare(String(other.error))),
    [
      {
        ...{ job_id: id, attempts: 1 },
        error: `Invalid payload: 'embed-entry': not a version of an entry; give entryType (guideline, knowledge, tool), entryId, versionId, content and seq`,
      },
      { entryType: 'guideline', entryId: '7', attempts: 1, error: 'refused' },
    ],
  )
})

test('a dead letter leaves when a newer version of its entry is stored, and no other does', async (t) => {
  const { service, enqueue, work, mill, lines, parts } = await rig(t)
  await enqueue(version('v1', 'bad'))
  await enqueue({ ...version('v1', 'bad'), entryId: '8' })
  await work()
  const duty = obsoleteLetters(service, parts.log)
  await duty.run()
  assert.equal((await queueStats(mill.engine)).dlqSize, 2)
  await enqueue(version('v2', 'good'))
  await work()
  await duty.run()
  const left = await openDesk(mill).list()
  assert.deepEqual(
    left.map(({ job }) => JSON.parse(job.payload).entryId),
    ['8'],
  )
  assert.partialDeepStrictEqual(lines.at(-1), {
    ...{ text: 'Dead letters of stored entries were discarded', fields: { count: 1 } },
  })
})

test('a namespace with vectors of another model is refused', async (t) => {
  const { service, enqueue, work, parts } = await rig(t)
  await enqueue(version('v1', 'one'))
  await work()
  await service.checkModel()
  const other = new EmbeddingService({ ...parts, embedder: hashEmbedder({ dimensions: 32 }) })
  await assert.rejects(other.checkModel(), /holds vectors of the model 'hash-16-v1'/)
})
