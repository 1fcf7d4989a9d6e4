/** What the tests of this folder share: a repository on a fresh database, and ports that do what a test says. */
import { after, before } from 'node:test'
import { silentLog } from '../../src/observe/log.ts'
import { TestClock } from '../../src/testing/test-clock.ts'
import { openDatabase } from '../database/database.ts'
import type { Embedder } from '../embeddings/embedder.ts'
import type { Vector } from '../embeddings/options.ts'
import type { Neighbour, SearchOptions, StoredVector, VectorEntry, VectorStore } from '../embeddings/vector-store.ts'
import type { WorkerJob } from '../framework/index.ts'
import { cosineSimilarity } from './consolidation/clusters.ts'
import type { CompletionOptions, Llm } from './llm/llm.ts'
import type { Memory } from './memory.ts'
import { MemoryRepository } from './repository.ts'
import { memoriesSchema } from './schema.ts'

export const ANN = { workspaceId: 'w1', userId: 'ann' }
export const BOB = { workspaceId: 'w1', userId: 'bob' }

/** Vectors in a map. Fails as often as it is told to. */
export class MapVectors implements VectorStore {
  readonly stored = new Map<string, StoredVector>()
  upserts = 0
  failUpserts = 0

  async upsert(namespace: string, entries: readonly VectorEntry[]): Promise<readonly boolean[]> {
    this.upserts += 1
    if (this.failUpserts > 0) {
      this.failUpserts -= 1
      throw new Error('the vector store is down')
    }
    return entries.map(({ id, vector, metadata = {}, seq = 0, versionId = null }) => {
      const known = this.stored.get(`${namespace} ${id}`)
      if (known !== undefined && known.seq >= seq) return false
      this.stored.set(`${namespace} ${id}`, { id, vector: Float32Array.from(vector), metadata, seq, versionId })
      return true
    })
  }

  async get(namespace: string, ids: readonly string[]): Promise<readonly (StoredVector | null)[]> {
    return ids.map((id) => this.stored.get(`${namespace} ${id}`) ?? null)
  }

  async search(namespace: string, vector: Vector, { limit = 10, filter = {} }: SearchOptions = {}) {
    const all = [...this.stored].filter(([key]) => key.startsWith(`${namespace} `)).map(([, stored]) => stored)
    return all
      .filter(({ metadata }) => Object.entries(filter).every(([name, value]) => metadata[name] === value))
      .map(({ id, metadata, vector: other }): Neighbour => ({ id, metadata, score: cosineSimilarity(vector, other) }))
      .sort((a, b) => b.score - a.score)
      .slice(0, limit)
  }

  async remove(namespace: string, ids: readonly string[]): Promise<number> {
    return ids.filter((id) => this.stored.delete(`${namespace} ${id}`)).length
  }
}

const DIMENSIONS = 64

/** Texts with the same words have the same vector. */
export function wordVector(text: string): readonly number[] {
  const vector = Array<number>(DIMENSIONS).fill(0)
  for (const word of text.toLowerCase().match(/\p{L}+/gu) ?? []) {
    const at = [...word].reduce((hash, char) => (hash * 31 + char.charCodeAt(0)) % DIMENSIONS, 7)
    vector[at] = (vector[at] ?? 0) + 1
  }
  return vector
}

export const wordEmbedder: Embedder = {
  model: 'words',
  threshold: 0.8,
  embedBatch: async (texts) => texts.map(wordVector),
}

/** A model that answers with the number of memories it was given, and remembers what it was asked. */
export class ScriptedLlm implements Llm {
  readonly asked: { readonly prompt: string; readonly options: CompletionOptions }[] = []
  /** Called before each answer; may change the tables or throw. */
  before: () => unknown = () => {}
  answer: (prompt: string) => string = (prompt) => `synthesis of ${prompt.match(/^\d+\. /gm)?.length}`

  async complete(prompt: string, options: CompletionOptions) {
    this.asked.push({ prompt, options })
    await this.before()
    return { text: this.answer(prompt) }
  }
}

/** The tables of a fresh database for the tests of one `describe`. */
export function tablesIn(makePlace: () => Promise<Place>): () => Tables {
  let opened: { readonly place: Place; readonly tables: Tables } | null = null
  before(async () => {
    const place = await makePlace()
    opened = { place, tables: await openRepository(place.url) }
  })
  after(async () => {
    await opened?.tables.close()
    await opened?.place.remove()
  })
  return () => {
    if (opened === null) throw new Error('the tables are opened before the first test')
    return opened.tables
  }
}

interface Place {
  readonly url: string
  remove(): Promise<void>
}

type Tables = Awaited<ReturnType<typeof openRepository>>

/** A job that is run by hand, as often as a test wants, with what it has reported. */
export function jobOf<Data>(data: Data, id = 'job-1'): WorkerJob<Data> & { readonly reported: readonly unknown[] } {
  const reported: unknown[] = []
  return {
    ...{
      id,
      data,
      type: 'test',
      name: 'test',
      attempt: 1,
      attemptsMade: 0,
      processedOn: 0,
      attempts: 3,
      priority: 5,
      key: null,
      latestKey: null,
      tenant: null,
    },
    ...{ createdAtMs: 0, token: 't', after: [], log: silentLog, signal: new AbortController().signal, reported },
    opts: { priority: 5, attempts: 3, timeout: 1_000, removeOnComplete: false, removeOnFail: false },
    updateProgress: async (progress) => {
      reported.push(progress)
      return true
    },
  }
}

async function openRepository(url: string) {
  const clock = new TestClock(Date.UTC(2026, 10, 17))
  const database = await openDatabase(url, { schemas: [memoriesSchema], migrate: true, clock })
  const repository = new MemoryRepository(database, { clock })
  /** Memories of Ann with their vectors. */
  const remember = async (vectors: MapVectors, contents: readonly string[], importance = 0.8) => {
    const saved = await repository.saveAll(contents.map((content) => ({ ...ANN, content, importance })))
    await vectors.upsert(
      'memories',
      saved.map(({ id, content }) => ({ id, vector: wordVector(content), seq: 1, metadata: { ...ANN } })),
    )
    await repository.markEmbedded(saved)
    return saved.map(({ id }) => id)
  }
  /** Everything that the tables say about memories, without times. */
  const rows = async () => ({
    memories: (
      await database.read('SELECT id, content, importance, embedding_id, source_id FROM {memories} ORDER BY id')
    ).map(plain),
    merges: (await database.read('SELECT target_id, source_id, job_id FROM {memory_merges} ORDER BY 1, 2')).map(plain),
  })
  const importances = async (ids: readonly string[], owner: Pick<Memory, 'workspaceId' | 'userId'> = ANN) =>
    (await repository.findByIds(ids, owner)).map(({ importance }) => importance)
  return { clock, database, repository, remember, rows, importances, close: () => database.close() }
}

function plain(row: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  return { ...row }
}
