/** What the tests of the batch worker stand on: an embedder that obeys the test, and a worker whose progress is kept. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { RunningJob } from '../../../src/job/definition.ts'
import { drain, openForTest, type settled } from '../../../src/testing/index.ts'
import type { Embedder } from '../embedder.ts'
import { hashEmbedder } from '../embedders/hash.ts'
import type { Vector } from '../options.ts'
import { openVectorStore, type SqlVectorStore } from '../vectors/store.ts'
import type { EmbeddingBatchData, EmbeddingBatchResult, EmbeddingItem } from './payload.ts'
import { EmbeddingBatchWorker } from './worker.ts'

/** Embeds by hashing, except for the calls that `answer` speaks for. */
export class ScriptedEmbedder implements Embedder {
  readonly model = 'scripted'
  readonly calls: (readonly string[])[] = []
  /** Called before each batch with its place from 1: throws, or returns other vectors than the right ones. */
  answer: (call: number, texts: readonly string[]) => readonly Vector[] | undefined | Promise<undefined> = () =>
    undefined
  readonly #hash = hashEmbedder({ dimensions: 32 })

  async embedBatch(texts: readonly string[]): Promise<readonly Vector[]> {
    this.calls.push(texts)
    const other = await this.answer(this.calls.length, texts)
    return other ?? this.#hash.embedBatch(texts)
  }

  get sizes(): readonly number[] {
    return this.calls.map(({ length }) => length)
  }
}

export class WatchedWorker extends EmbeddingBatchWorker {
  readonly progress: unknown[] = []

  override onProgress(_job: RunningJob, progress: unknown): void {
    this.progress.push(progress)
  }
}

export function itemsOf(count: number): EmbeddingItem[] {
  return Array.from({ length: count }, (_, index) => ({ text: `the text of number ${index}`, sourceId: `s${index}` }))
}

export interface Scene extends AsyncDisposable {
  readonly store: SqlVectorStore
  readonly embedder: ScriptedEmbedder
  readonly worker: WatchedWorker
  /** Runs a job as far as it goes without waiting for a retry, which `again` brings. */
  start(data: EmbeddingBatchData): Promise<{ again(): Promise<View>; view: View }>
}
export type View = Awaited<ReturnType<typeof settled>>

/** A worker on a real store, and a mill on a test clock. */
export async function scene(): Promise<Scene> {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-test-'))
  const store = await openVectorStore(`sqlite:${join(folder, 'vectors.db')}`)
  const stage = await openForTest()
  const embedder = new ScriptedEmbedder()
  const worker = new WatchedWorker(embedder, store, null, { clock: stage.clock })
  const look = async (id: string): Promise<View> => {
    const view = (await stage.mill.jobs()).find((job) => job.id === id)
    assert.ok(view)
    return view
  }
  return {
    ...{ store, embedder, worker },
    async start(data) {
      const { id } = await stage.mill.enqueue(worker.definition, data)
      await drain(stage.mill, [worker.definition])
      const again = async (): Promise<View> => {
        await stage.clock.advance('1h')
        await drain(stage.mill, [worker.definition])
        return look(id)
      }
      return { view: await look(id), again }
    },
    async [Symbol.asyncDispose]() {
      await stage.close()
      await store.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

export const resultOf = (view: View): EmbeddingBatchResult => view.result as EmbeddingBatchResult
export const countsOf = ({ total, succeeded, failed }: EmbeddingBatchResult) => [total, succeeded, failed]
