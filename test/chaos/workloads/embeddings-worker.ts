/**
 * A worker process for the chaos of embeddings: `embeddings-worker.ts <engine url> <table> <step>`. It kills itself at the step
 * with this number, which is between any two things that it does; 0 for none.
 */
import { flushCompileCache } from 'node:module'
import { open } from '../../../src/index.ts'
import {
  type Embedder,
  EmbeddingBatchWorker,
  EmbeddingReindexWorker,
  hashEmbedder,
  openVectorStore,
} from '../../../workloads/embeddings/index.ts'
import { NEW_DIMENSIONS, OLD_DIMENSIONS, textOfVersion } from './embeddings-data.ts'

const [url = '', table = '', killAt = '0'] = process.argv.slice(2)
let step = 0
const pass = (): void => {
  step += 1
  if (step === Number(killAt)) process.kill(process.pid, 'SIGKILL')
}
/** A step before it and one after it. */
const watched =
  <Args extends unknown[], Answer>(act: (...args: Args) => Promise<Answer>) =>
  async (...args: Args): Promise<Answer> => {
    pass()
    const answer = await act(...args)
    pass()
    return answer
  }
const watchedEmbedder = (embedder: Embedder): Embedder => ({ ...embedder, embedBatch: watched(embedder.embedBatch) })

const store = await openVectorStore(url)
const { database } = store
const transaction = database.transaction.bind(database)
Object.assign(database, {
  transaction: watched((work: Parameters<typeof transaction>[0]) => transaction(work)),
  write: watched(database.write.bind(database)),
})
const embedders = [OLD_DIMENSIONS, NEW_DIMENSIONS].map((dimensions) => watchedEmbedder(hashEmbedder({ dimensions })))
const [, next] = embedders
if (next === undefined) throw new Error('there are two embedders')
const batch = new EmbeddingBatchWorker(embedders, store, database, {
  sources: [{ table, column: 'embedding_id' }],
  limiter: null,
})
const reindex = new EmbeddingReindexWorker({
  store,
  embedder: next,
  texts: watched(async (entries) => entries.map(({ metadata, seq }) => textOfVersion(String(metadata.source), seq))),
})
const mill = await open(url)
// What a killed process held is taken over soon.
const soon = { leaseMs: 1_000, backoff: { kind: 'fixed', delay: '50ms' } } as const
const jobs = [
  { ...batch.definition, ...soon },
  { ...reindex.definition, ...soon },
]
const worker = await mill.work(jobs, { concurrency: 4, poll: '50ms', keeper: false, signals: true })
// For the processes after this one, which may be killed before it would be written.
flushCompileCache()
// Its parent was stopped.
process.once('disconnect', () => process.exit())
process.send?.('working')
await worker.stopped
await mill.close()
await store.close()
process.disconnect?.()
