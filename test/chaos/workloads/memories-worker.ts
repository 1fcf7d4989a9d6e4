/** A worker process for the chaos of memories: `memories-worker.ts <engine url>`. Its parent allows each step, or kills it there. */
import { flushCompileCache } from 'node:module'
import { hashEmbedder } from '../../../workloads/embeddings/index.ts'
import { localLlm, openMemories } from '../../../workloads/memories/index.ts'

const [engine = ''] = process.argv.slice(2)
const embedder = hashEmbedder()
const llm = localLlm()

/** Several jobs run at once, and each waits for its own step. */
const waiting = new Map<number, () => void>()
let steps = 0

function step(): Promise<void> {
  steps += 1
  const { promise, resolve } = Promise.withResolvers<void>()
  waiting.set(steps, resolve)
  process.send?.({ step: steps })
  return promise
}

process.on('message', ({ step: allowed }: { readonly step: number }) => {
  waiting.get(allowed)?.()
  waiting.delete(allowed)
})

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
