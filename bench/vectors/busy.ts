/** How busy a batch worker keeps its embedder. */
import { open } from '../../src/index.ts'
import { systemClock } from '../../src/time/clock.ts'
import {
  EmbeddingBatchWorker,
  functionEmbedder,
  hashEmbedder,
  openVectorStore,
} from '../../workloads/embeddings/index.ts'
import { DIMENSIONS } from './data.ts'

/** A quick one: APIs take 200 ms and more for 32 texts, and so do small models on a processor. */
const CALL_MS = 100
const ITEMS = 1_000
const JOBS = 2

/** The share of a job's time in which its embedder works. */
export async function busyShare(url: string): Promise<number> {
  const store = await openVectorStore(url)
  const hash = hashEmbedder({ dimensions: DIMENSIONS })
  let busyMs = 0
  const embedder = functionEmbedder({
    model: hash.model,
    async embed(texts) {
      // Made before the time is taken: it stands for a model elsewhere.
      const vectors = await hash.embedBatch(texts)
      const startedMs = systemClock.monotonicMs()
      await systemClock.sleep(CALL_MS)
      busyMs += systemClock.monotonicMs() - startedMs
      return vectors
    },
  })
  const worker = new EmbeddingBatchWorker(embedder, store, null, { concurrency: 1, limiter: null })
  const mill = await open(url)
  const namespace = `busy ${systemClock.nowMs()}`
  for (let job = 0; job < JOBS; job += 1) {
    const items = Array.from({ length: ITEMS }, (_, index) => ({
      sourceId: `${job}-${index}`,
      text: `the text of the source ${index} of the job ${job}`,
    }))
    await mill.enqueue(worker.definition, { items, namespace })
  }
  const times: number[] = []
  mill.events.on('job.settled', () => times.push(systemClock.monotonicMs()))
  const startedMs = systemClock.monotonicMs()
  const working = await mill.work([worker.definition])
  while (times.length < JOBS) await systemClock.sleep(5)
  await working.stop()
  await mill.close()
  await store.close()
  return busyMs / ((times.at(-1) ?? startedMs) - startedMs)
}
