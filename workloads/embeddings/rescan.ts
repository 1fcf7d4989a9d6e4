import { OptionError } from '../../src/errors.ts'
import { checkInput, type EmbeddingInput } from './entry.ts'
import type { EmbeddingStore } from './options.ts'

export interface Rescanned {
  readonly checked: number
  /** Their stored version was missing or another one. */
  readonly enqueued: number
}

const ENTRIES_PER_READ = 200

/** Enqueues the entries whose stored version is not the current one. */
export async function rescan(
  store: EmbeddingStore,
  entries: Iterable<EmbeddingInput> | AsyncIterable<EmbeddingInput>,
  enqueue: (input: EmbeddingInput) => void,
): Promise<Rescanned> {
  if (store.stored === undefined) {
    throw new OptionError(`this store does not say what it holds; use vectorEmbeddings, or implement 'stored'`)
  }
  let [checked, enqueued] = [0, 0]
  const compare = async (page: readonly EmbeddingInput[]): Promise<void> => {
    const stored = (await store.stored?.(page)) ?? []
    for (const [index, input] of page.entries()) {
      const known = stored[index] ?? null
      checked += 1
      // Another writer was faster: a version that is later than this one needs nothing.
      const isCurrent = known !== null && (known.versionId === input.versionId || known.seq > (input.seq ?? Infinity))
      if (isCurrent) continue
      enqueue(input)
      enqueued += 1
    }
  }
  let page: EmbeddingInput[] = []
  for await (const input of entries) {
    checkInput(input)
    page.push(input)
    if (page.length < ENTRIES_PER_READ) continue
    await compare(page)
    page = []
  }
  await compare(page)
  return { checked, enqueued }
}
