/** The workload, assembled: memories in tables, their vectors, and the jobs that keep them. */
import { type Mill, open } from '../../src/client/mill.ts'
import type { Transaction } from '../../src/engine/engine.ts'
import type { Log } from '../../src/job/definition.ts'
import { type OptionNames, refuseUnknown } from '../../src/job/known-options.ts'
import type { NamedSchedule } from '../../src/keeper/timetable.ts'
import { silentLog } from '../../src/observe/log.ts'
import { type Clock, systemClock } from '../../src/time/clock.ts'
import type { WorkerOptions } from '../../src/worker/options.ts'
import type { Worker } from '../../src/worker/worker.ts'
import type { WorkloadDatabase } from '../database/database.ts'
import type { Embedders } from '../embeddings/embedder.ts'
import { hashEmbedder } from '../embeddings/embedders/hash.ts'
import type { Optimizable } from '../embeddings/index-optimization.ts'
import type { VectorStore } from '../embeddings/vector-store.ts'
import { openVectorStore } from '../embeddings/vectors/store.ts'
import { housekeepingSchedules, type Metrics } from '../framework/index.ts'
import { MEMORIES_MAX, type MemoryConsolidationData } from './consolidation/contract.ts'
import { MemoryConsolidationWorker } from './consolidation/worker.ts'
import { EMBEDDED_AT_ONCE, MemoryEmbeddingWorker } from './embedding.ts'
import type { Llm } from './llm/llm.ts'
import { localLlm } from './llm/local.ts'
import type { Memory, NewMemory, Owner } from './memory.ts'
import { type ForgetOptions, type Forgotten, MemoryRemoval } from './removal.ts'
import { MemoryRepository } from './repository.ts'
import { type FoundMemory, type MemorySearch, searchMemories } from './search.ts'
import { openMemoryTables } from './tables.ts'
import { MemoryCleanupWorker } from './upkeep/cleanup.ts'
import { MemoryDecayWorker } from './upkeep/decay.ts'
import { memoriesFullText } from './upkeep/full-text.ts'
import { MEMORIES_NAMESPACE, MemoryVectors } from './vectors.ts'

export interface MemoriesOptions {
  /** A `sqlite:` or `postgres:` URL: memories, vectors and jobs are all there. */
  readonly engine: string
  /** Default: `hashEmbedder()`, which compares words and needs no network. Several while `embedding-reindex` moves to another. */
  readonly embedder?: Embedders
  /** Default: the vector store of the engine; on Postgres it needs pgvector. */
  readonly vectors?: VectorStore
  /** Writes the syntheses; default: `localLlm()`, which only picks sentences. */
  readonly model?: Llm
  /** Of the vectors; default: `memories`. */
  readonly namespace?: string
  /** Create or update the tables; default: true for SQLite, false for Postgres. */
  readonly migrate?: boolean
  readonly clock?: Clock
  /** Default: nothing is logged. */
  readonly log?: Log
  readonly metrics?: Metrics
}

const NAMES: OptionNames<MemoriesOptions> = {
  ...{ engine: true, embedder: true, vectors: true, model: true, namespace: true, migrate: true },
  ...{ clock: true, log: true, metrics: true },
}

/**
 * The decay of the worker framework, and a cleanup every night.
 *
 * @example
 * await mill.keep({ jobs: memories.jobs, schedules: memorySchedules })
 */
export const memorySchedules: readonly NamedSchedule[] = Object.freeze([
  ...housekeepingSchedules.filter(({ name }) => name === 'memory-importance-decay'),
  {
    name: 'memory-cleanup',
    type: 'memory-cleanup',
    cron: '0 30 3 * * *',
    tz: 'UTC',
    payload: { importanceBelow: 0.05, olderThanDays: 30 },
  },
])

type Parts = Awaited<ReturnType<typeof openMemoryParts>>

/** Opens the tables and builds the workers. The jobs may be on another engine than the tables. */
export async function openMemoryParts(options: MemoriesOptions) {
  const { engine, embedder = hashEmbedder(), model = localLlm(), namespace = MEMORIES_NAMESPACE } = options
  const { clock = systemClock, log = silentLog, metrics, migrate } = options
  const opening = { clock, ...(migrate !== undefined && { migrate }) }
  const database = await openMemoryTables(engine, opening)
  const own = options.vectors === undefined ? await openVectorStore(engine, opening).catch(closing(database)) : null
  const store = options.vectors ?? own
  if (store === null) throw new TypeError('a vector store is opened where none is given')
  const repository = new MemoryRepository(database, { clock })
  const mark = repository.markEmbedded.bind(repository)
  const vectors = new MemoryVectors({ store, embedder, namespace, mark })
  // The store that is opened here is in the same file as the memories, which is rewritten anyway.
  const eraseVectors = async () => (own === null ? ((await store.eraseRemoved?.()) ?? true) : true)
  const removal = new MemoryRemoval({ database, clock, removeVectors: (ids) => vectors.remove(ids), eraseVectors })
  const outlets = { clock, log, ...(metrics !== undefined && { metrics }) }
  const consolidation = new MemoryConsolidationWorker(repository, store, model, { embedder, namespace, ...outlets })
  const embedding = new MemoryEmbeddingWorker(repository, vectors, outlets)
  const decay = new MemoryDecayWorker(database, outlets)
  const cleanup = new MemoryCleanupWorker(database, removal, outlets)
  const jobs = [consolidation.definition, embedding.definition, decay.definition, cleanup.definition] as const
  const close = async (): Promise<void> => {
    try {
      await own?.close()
    } finally {
      await database.close()
    }
  }
  const indexes = [memoriesFullText(database), ...(own === null ? [] : [own])]
  return { database, repository, vectors, removal, consolidation, embedding, jobs, indexes, close }
}

/** Leaves nothing open where opening fails. */
function closing(database: WorkloadDatabase) {
  return async (error: unknown): Promise<never> => {
    await database.close()
    throw error
  }
}

/** All memories of an owner that are not merged yet, where no ids are given. */
export interface ConsolidationRequest extends Owner {
  readonly memoryIds?: readonly string[]
  /** Default: `merge`. */
  readonly consolidationType?: string
}

const REQUEST_NAMES: OptionNames<ConsolidationRequest> = {
  ...{ workspaceId: true, userId: true, memoryIds: true, consolidationType: true },
}

/** `openMemories` returns it. */
export class Memories {
  readonly mill: Mill
  readonly repository: MemoryRepository
  /** For `mill.work`, or a module of the command line. */
  readonly jobs: Parts['jobs']
  /** For `mill.keep`: the decay every six hours and the cleanup every night. */
  readonly schedules = memorySchedules
  /** For `IndexOptimizationWorker`: the full text, and the vectors that were opened here. */
  readonly indexes: readonly Optimizable[]
  readonly #parts: Parts
  readonly #clock: Clock
  #closing: Promise<void> | null = null

  constructor(mill: Mill, parts: Parts, clock: Clock) {
    this.mill = mill
    this.repository = parts.repository
    this.jobs = parts.jobs
    this.indexes = parts.indexes
    this.#parts = parts
    this.#clock = clock
  }

  /** Saves a memory and enqueues its embedding, both or neither. It is found by words at once, by meaning once it is embedded. */
  async remember(memory: NewMemory, options: { readonly within?: Transaction } = {}): Promise<Memory> {
    const [saved] = await this.rememberAll([memory], options)
    if (saved === undefined) throw new TypeError('a memory that is saved is returned')
    return saved
  }

  /** The same for many, all or none. */
  async rememberAll(
    memories: readonly NewMemory[],
    { within }: { readonly within?: Transaction } = {},
  ): Promise<readonly Memory[]> {
    return within === undefined
      ? this.#parts.database.transaction((transaction) => this.#remember(memories, transaction.within))
      : this.#remember(memories, within)
  }

  async #remember(memories: readonly NewMemory[], within: Transaction): Promise<readonly Memory[]> {
    const saved = await this.repository.saveAll(memories, within)
    const byOwner = Object.groupBy(saved, ({ workspaceId, userId }) => JSON.stringify([workspaceId, userId]))
    for (const owned of Object.values(byOwner)) {
      for (const part of chunks(owned ?? [], EMBEDDED_AT_ONCE)) {
        const [{ workspaceId, userId }] = part
        const payload = { workspaceId, userId, memoryIds: part.map(({ id }) => id) }
        await this.mill.enqueue(this.#parts.embedding.definition, payload, { within })
      }
    }
    return saved
  }

  /** The best match first. */
  search(search: MemorySearch): Promise<readonly FoundMemory[]> {
    const { repository, vectors } = this.#parts
    return searchMemories(search, { repository, vectors, clock: this.#clock })
  }

  /** For `EmbeddingReindexWorker`, in order: the texts of vectors, null for memories that are gone. */
  readonly texts = (entries: readonly { readonly id: string }[]): Promise<readonly (string | null)[]> =>
    this.repository.contents(entries.map(({ id }) => id))

  /** Removes memories with their text, vectors and what consolidations wrote from them. A file of SQLite is written anew. */
  forget({ workspaceId, userId }: Owner, ids: readonly string[], options?: ForgetOptions): Promise<Forgotten> {
    return this.#parts.removal.forget({ workspaceId, userId }, ids, options)
  }

  /**
   * Enqueues a consolidation, of the latest memories whose text no merge has taken in yet unless ids are given. Null where there are
   * fewer than two of them.
   */
  async consolidate(request: ConsolidationRequest) {
    refuseUnknown(request, REQUEST_NAMES, 'consolidate')
    const { workspaceId, userId, consolidationType = 'merge' } = request
    const memoryIds = request.memoryIds ?? (await this.repository.unmerged({ workspaceId, userId }, MEMORIES_MAX))
    if (request.memoryIds === undefined && memoryIds.length < 2) return null
    const payload: MemoryConsolidationData = { workspaceId, userId, memoryIds: [...memoryIds], consolidationType }
    return this.mill.enqueue(this.#parts.consolidation.definition, payload)
  }

  /** Starts a worker of the jobs and a keeper of the schedules. Both run until `close`. */
  async work(options: Omit<WorkerOptions, 'keeper'> = {}): Promise<Worker> {
    const worker = await this.mill.work(this.jobs, { ...options, keeper: false })
    await this.mill.keep({ jobs: this.jobs, schedules: this.schedules })
    return worker
  }

  /** Stops what `work` started, and closes the mill and the tables. */
  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    try {
      await this.mill.close()
    } finally {
      await this.#parts.close()
    }
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }
}

function* chunks<Item>(items: readonly Item[], size: number): Generator<readonly [Item, ...Item[]]> {
  for (let start = 0; start < items.length; start += size) {
    const [first, ...others] = items.slice(start, start + size)
    if (first !== undefined) yield [first, ...others]
  }
}

/**
 * Opens memories in this process. Without `model` and `embedder` nothing leaves the machine.
 *
 * @example
 * const memories = await openMemories({ engine: 'sqlite:./memories.db' })
 * await memories.remember({ workspaceId: 'w1', userId: 'ann', content: 'Ann drinks green tea.' })
 * await memories.work()
 */
export async function openMemories(options: MemoriesOptions): Promise<Memories> {
  refuseUnknown(options, NAMES, 'openMemories')
  const { clock = systemClock, log = silentLog, engine } = options
  const parts = await openMemoryParts(options)
  try {
    return new Memories(await open(engine, { jobs: parts.jobs, clock, log }), parts, clock)
  } catch (error) {
    await parts.close()
    throw error
  }
}
