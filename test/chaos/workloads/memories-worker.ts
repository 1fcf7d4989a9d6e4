/** A worker process for the chaos of memories: `memories-worker.ts <engine url>`. It tells its parent of each step. */
import { flushCompileCache } from 'node:module'
import { systemClock } from '../../../src/time/clock.ts'
import { hashEmbedder } from '../../../workloads/embeddings/index.ts'
import { localLlm, openMemories } from '../../../workloads/memories/index.ts'

const [engine = ''] = process.argv.slice(2)
/** Long enough for a kill to fall between any two steps. */
const STEP_MS_MAX = 8
const embedder = hashEmbedder()
const llm = localLlm()

async function step(): Promise<void> {
  process.send?.('step')
  await systemClock.sleep(Math.random() * STEP_MS_MAX)
}

const memories = await openMemories({
  engine,
  embedder: {
    ...embedder,
    async embedBatch(texts, call) {
      await step()
      const vectors = await embedder.embedBatch(texts, call)
      await step()
      return vectors
    },
  },
  model: {
    async complete(prompt, options) {
      await step()
      return llm.complete(prompt, options)
    },
  },
})
// What a killed process held is taken over soon, and the rate limit would only make it slow.
const quick = { leaseMs: 1_000, limit: null, backoff: { kind: 'fixed', delay: '50ms' } } as const
const jobs = memories.jobs.map((job) => ({ ...job, ...quick }))
const worker = await memories.mill.work(jobs, { concurrency: 6, poll: '50ms', reap: '500ms', signals: true })
// For the processes after this one, which may be killed before it would be written.
flushCompileCache()
// Its parent was stopped.
process.once('disconnect', () => process.exit())
process.send?.('working')
await worker.stopped
await memories.close()
process.disconnect?.()
