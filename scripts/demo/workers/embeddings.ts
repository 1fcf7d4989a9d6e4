/** A thousand texts, embedded in jobs of a hundred, and searched. */
import type { Mill } from '../../../src/index.ts'
import { systemClock } from '../../../src/time/clock.ts'
import type { Embedder, EmbeddingBatchWorker, SqlVectorStore } from '../../../workloads/embeddings/index.ts'
import { progressBar, step } from '../progress.ts'
import { counted, type Outcome, percentile } from './outcome.ts'
import { QUESTIONS, TEXTS } from './texts.ts'

const NAMESPACE = 'reports'
const ITEMS_PER_JOB = 50

interface Embedding {
  readonly mill: Mill
  readonly job: EmbeddingBatchWorker['definition']
  readonly vectors: SqlVectorStore
  readonly signal: AbortSignal
}

export async function embedTexts({ mill, job, vectors, signal }: Embedding): Promise<Outcome> {
  const startedMs = systemClock.monotonicMs()
  const ids: string[] = []
  for (let start = 0; start < TEXTS.length; start += ITEMS_PER_JOB) {
    const items = TEXTS.slice(start, start + ITEMS_PER_JOB).map(({ sourceId, text, thing }) => ({
      ...{ sourceId, text },
      metadata: { thing },
    }))
    ids.push((await mill.enqueue(job, { namespace: NAMESPACE, items })).id)
  }
  const bar = progressBar('embedded', TEXTS.length, 'texts')
  await counted(mill, ids, { at: (done) => bar.at(done * ITEMS_PER_JOB) }, signal)
  const tookMs = systemClock.monotonicMs() - startedMs
  const { count = 0, search = '' } = (await vectors.namespace(NAMESPACE)) ?? {}
  return {
    figures: [['texts embedded', `${count} in ${(tookMs / 1_000).toFixed(1)} s (at most 5 jobs start in a second)`]],
    checks: [[count === TEXTS.length, `${count} of ${TEXTS.length} texts have one vector each; search is ${search}`]],
  }
}

interface Searching {
  readonly vectors: SqlVectorStore
  readonly embedder: Embedder
  readonly signal: AbortSignal
}

export async function searchTexts({ vectors, embedder, signal }: Searching): Promise<Outcome> {
  const times: number[] = []
  let right = 0
  for (const { question, thing } of QUESTIONS) {
    if (signal.aborted) break
    const [vector = []] = await embedder.embedBatch([question])
    const startedMs = systemClock.monotonicMs()
    const [best] = await vectors.search(NAMESPACE, vector, { limit: 5 })
    times.push(systemClock.monotonicMs() - startedMs)
    if (best?.metadata.thing === thing) right += 1
  }
  step('searched', `${QUESTIONS.length} questions; «${QUESTIONS[0]?.question}»`)
  return {
    figures: [
      [
        'nearest neighbours',
        `p50 ${percentile(times, 0.5).toFixed(1)} ms, slowest ${Math.max(...times).toFixed(1)} ms`,
      ],
    ],
    checks: [
      [
        right === QUESTIONS.length,
        `the best answer to ${right} of ${QUESTIONS.length} questions is about what was asked`,
      ],
    ],
  }
}
