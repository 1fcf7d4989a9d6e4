/** What the tests of the embedding queue stand on: an embedder that obeys the test, and a record of what it was asked. */
import assert from 'node:assert/strict'
import { TestClock } from '../../src/testing/test-clock.ts'
import {
  createEmbeddingQueue,
  type EmbeddingInput,
  type EmbeddingQueue,
  type EmbeddingQueueOptions,
  type EntryType,
  entryKey,
  MemoryEmbeddings,
  type Vector,
} from './index.ts'

export interface Call {
  readonly key: string
  readonly content: string
  readonly versionId: string
  readonly seq: number
  readonly attempts: number
  readonly atMs: number
  readonly signal: AbortSignal
  succeed(vector?: Vector): void
  fail(error: unknown): void
}

interface LogLine {
  readonly level: 'debug' | 'info' | 'warn' | 'error'
  readonly text: string
  readonly fields: Readonly<Record<string, unknown>>
}

/** Embedders answer at once unless `hold` says that the test answers for them. */
export class Rig {
  readonly clock = new TestClock()
  readonly embeddings = new MemoryEmbeddings()
  readonly calls: Call[] = []
  readonly log: LogLine[] = []
  readonly queue: EmbeddingQueue
  running = 0
  runningMax = 0
  /** What a call comes to, for rigs that do not hold: an error fails it. */
  answer: (call: Call) => unknown = () => null
  readonly #startMs = this.clock.nowMs()

  constructor(options: Partial<EmbeddingQueueOptions> & { readonly hold?: boolean } = {}) {
    const { hold = false, ...rest } = options
    const line =
      (level: LogLine['level']) =>
      (text: string, fields: Readonly<Record<string, unknown>> = {}) =>
        void this.log.push({ level, text, fields })
    this.queue = createEmbeddingQueue({
      embed: (content, { job, signal }) => this.#embed(content, job, signal, hold),
      store: this.embeddings,
      clock: this.clock,
      log: { debug: line('debug'), info: line('info'), warn: line('warn'), error: line('error') },
      ...rest,
    })
  }

  async #embed(
    content: string,
    job: EmbeddingInput & { readonly seq: number; readonly attempts: number },
    signal: AbortSignal,
    hold: boolean,
  ): Promise<Vector> {
    const { promise, resolve, reject } = Promise.withResolvers<Vector>()
    const call: Call = {
      key: entryKey(job.entryType, job.entryId),
      content,
      versionId: job.versionId,
      seq: job.seq,
      attempts: job.attempts,
      atMs: this.clock.nowMs() - this.#startMs,
      signal,
      succeed: (vector = [content.length]) => resolve(vector),
      fail: reject,
    }
    this.calls.push(call)
    if (!hold) {
      const error = this.answer(call)
      if (error === null) call.succeed()
      else call.fail(error)
    }
    this.running += 1
    this.runningMax = Math.max(this.runningMax, this.running)
    return promise.finally(() => {
      this.running -= 1
    })
  }

  /** One version of a guideline; the content is its version's name. */
  enqueue(entryId: string, versionId: string, seq?: number, entryType: EntryType = 'guideline'): void {
    const input = { entryType, entryId, versionId, content: versionId }
    this.queue.enqueue(seq === undefined ? input : { ...input, seq })
  }

  /** Lets everything happen that needs no time to pass. */
  async settle(): Promise<void> {
    await this.clock.advance(0)
  }

  call(index: number): Call {
    const call = this.calls[index]
    assert.ok(call, `the embedder was not called ${index + 1} times`)
    return call
  }

  /** What was asked of the embedder, in order. */
  get contents(): readonly string[] {
    return this.calls.map(({ content }) => content)
  }

  stored(entryId: string, entryType: EntryType = 'guideline'): string | null {
    return this.embeddings.get(entryType, entryId)?.versionId ?? null
  }

  /** Ends the queue, letting the time pass that hung embedders take. */
  async close(): Promise<void> {
    const closed = this.queue.close()
    await this.clock.advance('1m')
    await closed
    assert.equal(this.clock.waiting, 0, 'timers were left behind')
  }
}

/** Runs a test on a rig and closes it, whatever happens. */
export function withRig(
  options: ConstructorParameters<typeof Rig>[0],
  test: (rig: Rig) => Promise<void>,
): () => Promise<void> {
  return async () => {
    const rig = new Rig(options)
    try {
      // The worker is up and waits for work.
      await rig.settle()
      await test(rig)
    } finally {
      await rig.close()
    }
  }
}
