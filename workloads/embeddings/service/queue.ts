/** The embedding queue on any engine that knows latest keys: the same job as in memory, and its figures under the same names. */
import type { Mill } from '../../../src/client/mill.ts'
import { NO_JOBS } from '../../../src/engine/counts.ts'
import type { Engine } from '../../../src/engine/engine.ts'
import type { MillEvents } from '../../../src/events.ts'
import type { Log } from '../../../src/job/definition.ts'
import { errorText } from '../../../src/job/error-record.ts'
import { omitUndefined } from '../../../src/job/known-options.ts'
import type { Clock } from '../../../src/time/clock.ts'
import { type Embedder, embedderFor, searchText } from '../embedder.ts'
import { checkInput, type EmbeddingInput, type EntryType, entryKey, readVersion } from '../entry.ts'
import { EMBED_TYPE, embeddingJob } from '../generate.ts'
import { resolveOptions } from '../options.ts'
import type { QueueStats } from '../queue.ts'
import { embedWith, vectorEmbeddings } from '../vector-embeddings.ts'
import type { SqlVectorStore } from '../vectors/store.ts'
import type { EmbeddingsSettings } from './config.ts'

const NAMESPACE_DEFAULT = 'entries'

export interface ServiceParts {
  readonly embedder: Embedder
  readonly vectors: SqlVectorStore
  readonly settings: EmbeddingsSettings
  readonly clock: Clock
  readonly log: Log
}

/** The figures of `getQueueStats`, over all processes. Old dead letters are not dropped here, so none are counted. */
export type ServiceStats = Omit<QueueStats, 'dlqDropped'>

/** Reads them from the counts of the type. */
export async function queueStats(engine: Pick<Engine, 'counts'>): Promise<ServiceStats> {
  const { ready, inProgress, dead, delayed } = (await engine.counts())[EMBED_TYPE] ?? NO_JOBS
  return { pending: ready, inFlight: inProgress, dlqSize: dead, uniqueEntries: ready, retrying: delayed }
}

export interface Queued {
  readonly id: string
  /** `replaced`: an older version that waited gave way. `stale`: a newer one was there, and nothing was stored. */
  readonly status: string
  readonly seq: number
}

export class EmbeddingService {
  readonly job: ReturnType<typeof embeddingJob>
  readonly store: ReturnType<typeof vectorEmbeddings>
  readonly #parts: ServiceParts
  readonly #namespace: string
  /** Where a worker runs. */
  #mill: Mill | null = null
  #detach: () => void = () => {}
  #seq = 0

  constructor(parts: ServiceParts) {
    const { embedder, vectors, log, clock, settings } = parts
    const { namespace = NAMESPACE_DEFAULT, maxConcurrency, maxRetries, timeoutMs } = settings
    this.#parts = parts
    this.#namespace = namespace
    this.store = vectorEmbeddings(vectors, { namespace, model: embedder.model })
    const given = omitUndefined({ maxConcurrency, maxRetries, timeoutMs })
    const options = resolveOptions({ embed: embedWith(embedder), store: this.store, log, clock, ...given })
    // The engine orders versions, and the store refuses an older one: nothing has to be remembered here.
    this.job = embeddingJob(options, { isLatest: () => true, onStored: () => {} })
  }

  /** Throws where the namespace holds vectors of another model. */
  async checkModel(): Promise<void> {
    const { vectors, embedder } = this.#parts
    await embedderFor(vectors, this.#namespace, embedder)
  }

  /** For the mill whose worker runs the job: logs what fails for good. */
  attach(mill: Mill): void {
    this.#mill = mill
    const onEnd = ({ job, outcome }: MillEvents['lease.reaped']): void => {
      if (job.type === EMBED_TYPE && outcome.kind === 'dead') void this.#tell(mill, job.id)
    }
    this.#detach = mill.events.attach({ 'job.settled': onEnd, 'lease.reaped': onEnd })
  }

  detach(): void {
    this.#detach()
  }

  /** The one of `attach`; null before. */
  get mill(): Mill | null {
    return this.#mill
  }

  /** A version without `seq` gets the time, which grows with every call. */
  async enqueue(mill: Mill, input: EmbeddingInput): Promise<Queued> {
    checkInput(input)
    const seq = input.seq ?? Math.max(this.#seq + 1, this.#parts.clock.nowMs())
    this.#seq = Math.max(this.#seq, seq)
    const latest = { key: entryKey(input.entryType, input.entryId), seq }
    const { id, status } = await mill.enqueue(this.job, { ...input, seq }, { latest })
    return { id, status, seq }
  }

  /** The entries whose text is nearest, as far as the embedder understands it. */
  async search(text: string, options: { readonly limit: number; readonly entryType?: EntryType | undefined }) {
    const { embedder, vectors } = this.#parts
    const filter = options.entryType === undefined ? {} : { filter: { entryType: options.entryType } }
    const found = await searchText(vectors, embedder, this.#namespace, text, { limit: options.limit, ...filter })
    const stored = await vectors.get(
      this.#namespace,
      found.map(({ id }) => id),
    )
    return found.map(({ id, score }, index) => ({ entry: id, versionId: stored[index]?.versionId ?? null, score }))
  }

  /** A version that a newer one has superseded meanwhile is no dead letter. */
  async #tell(mill: Mill, id: string): Promise<void> {
    const { log } = this.#parts
    try {
      const dead = await mill.job(id)
      if (dead?.state !== 'dead_letter') return
      const facts = { attempts: dead.attempt, error: dead.error?.message ?? null }
      log.error('Embedding failed permanently', { ...entryOf(dead.payload, id), ...facts })
    } catch (error) {
      log.error('Embedding failed permanently', { job_id: id, error: errorText(error) })
    }
  }
}

/** A payload that somebody enqueued by hand may be anything. */
function entryOf(payload: string, id: string) {
  try {
    const { entryType, entryId } = readVersion(payload)
    return { entryType, entryId }
  } catch {
    return { job_id: id }
  }
}
