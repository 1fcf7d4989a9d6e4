/** Fifty memories that say ten things in five ways each, consolidated twice. */
import { systemClock } from '../../../src/time/clock.ts'
import type { Memories } from '../../../workloads/memories/index.ts'
import { progressBar, step } from '../progress.ts'
import type { Outcome } from './outcome.ts'
import { FACT_COUNT, MEMORIES } from './texts.ts'

const ANN = { workspaceId: 'demo', userId: 'ann' }
const IMPORTANCE = 0.8
const LOOK_MS = 50
const PATIENCE_MS = 300_000

interface Consolidating {
  readonly memories: Memories
  readonly signal: AbortSignal
}

export async function consolidateMemories({ memories, signal }: Consolidating): Promise<Outcome> {
  const saved = await memories.rememberAll(MEMORIES.map((content) => ({ ...ANN, content, importance: IMPORTANCE })))
  const memoryIds = saved.map(({ id }) => id)
  await untilEmbedded(memories, memoryIds, signal)
  const consolidate = async () => {
    const receipt = await memories.consolidate({ ...ANN, memoryIds })
    return receipt === null ? null : memories.mill.result(receipt, { timeout: '5m', signal })
  }
  const first = await consolidate()
  const second = await consolidate()
  const created = first?.consolidated === true ? first.memoriesCreated : 0
  const createdAgain = second?.consolidated === true ? second.memoriesCreated : 0
  step('merged', `${saved.length} memories into ${created}`)
  const sources = await memories.repository.findByIds(memoryIds, ANN)
  const halved = sources.filter(({ importance }) => importance === IMPORTANCE / 2).length
  const [found] = await memories.search({ ...ANN, text: 'which cats does she have?', limit: 1 })
  return {
    figures: [['memories consolidated', `${saved.length} into ${created}`]],
    checks: [
      [created === FACT_COUNT, `${created} new memories were written about ${FACT_COUNT} facts`],
      [halved === saved.length, `${halved} of ${saved.length} sources have half of their importance`],
      [createdAgain === 0, 'a second consolidation of the same memories changed nothing'],
      [/Pixel/.test(found?.memory.content ?? ''), `a search finds: ${found?.memory.content ?? 'nothing'}`],
    ],
  }
}

async function untilEmbedded(memories: Memories, ids: readonly string[], signal: AbortSignal): Promise<void> {
  const bar = progressBar('memories', ids.length, 'embedded')
  const untilMs = systemClock.monotonicMs() + PATIENCE_MS
  for (;;) {
    const embedded = (await memories.repository.findByIds(ids, ANN)).filter(({ embeddingId }) => embeddingId !== null)
    bar.at(embedded.length)
    if (embedded.length === ids.length || signal.aborted) return
    if (systemClock.monotonicMs() > untilMs) throw new Error('the memories were not embedded in time')
    await systemClock.sleep(LOOK_MS, signal)
  }
}
