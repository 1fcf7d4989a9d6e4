import { defineJob, type HandledJob } from '../../src/job/definition.ts'
import { type EntryVersion, versionSchema } from './entry.ts'
import type { ResolvedOptions, Vector } from './options.ts'

export const EMBED_TYPE = 'embed-entry'

export interface Generation {
  /** Whether no newer version has arrived since. */
  isLatest(version: EntryVersion): boolean
  onStored(version: EntryVersion): void
}

type Outcome = 'stored' | 'refused' | 'superseded'

/** The job: embed one version and store its vector. */
export function embeddingJob(
  options: ResolvedOptions,
  generation: Generation,
): HandledJob<EntryVersion, EntryVersion, Outcome> {
  const { embed, store, maxConcurrency, maxRetries, backoff, timeoutMs } = options
  return defineJob({
    type: EMBED_TYPE,
    payload: versionSchema,
    attempts: maxRetries,
    backoff,
    timeout: timeoutMs,
    // With its own limit the worker does not claim ahead, so a version that has not started can still be replaced.
    concurrency: maxConcurrency,
    async run({ payload: version, signal, job }): Promise<Outcome> {
      // A newer version can arrive between the claim and the start.
      if (!generation.isLatest(version)) return 'superseded'
      // Nothing is known here about an entry that was idle, but the store remembers.
      const [known] = (await withErrors(() => store.stored?.([version]) ?? [])) ?? []
      if (known !== null && known !== undefined && known.seq >= version.seq) {
        generation.onStored(version)
        return known.seq === version.seq ? 'stored' : 'refused'
      }
      const vector = await withErrors(() =>
        embed(version.content, { job: { ...version, attempts: job.attempt }, signal }),
      )
      assertVector(vector)
      // An embedder that ignores the signal must not write for an entry that was cancelled or timed out.
      signal.throwIfAborted()
      const { entryType, entryId, versionId, seq } = version
      const saved = await withErrors(() => store.save({ entryType, entryId, versionId, seq, vector }))
      signal.throwIfAborted()
      generation.onStored(version)
      return saved ? 'stored' : 'refused'
    },
  })
}

/** Turns anything thrown into an Error with the text `String(thrown)`. An HTTP status on it still counts. */
async function withErrors<Value>(act: () => Promise<Value> | Value): Promise<Value> {
  try {
    return await act()
  } catch (thrown) {
    if (thrown instanceof Error) throw thrown
    const status: unknown = typeof thrown === 'object' && thrown !== null ? Reflect.get(thrown, 'status') : undefined
    throw Object.assign(new Error(textOf(thrown), { cause: thrown }), typeof status === 'number' && { status })
  }
}

function textOf(thrown: unknown): string {
  try {
    return String(thrown)
  } catch {
    return 'something that is not an Error and has no text was thrown'
  }
}

function assertVector(vector: Vector): void {
  const isVector = Array.isArray(vector) || ArrayBuffer.isView(vector)
  if (isVector && vector.length > 0 && vector.every((value) => Number.isFinite(value))) return
  throw new TypeError(`'embed' returned no vector; return an array of numbers that is not empty`)
}
