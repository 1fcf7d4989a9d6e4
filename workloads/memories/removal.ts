/** Removing memories: rows and full text at once, vectors right after. Vectors can be in another database, so they are noted. */
import { type OptionNames, refuseUnknown } from '../../src/job/known-options.ts'
import { type Clock, systemClock } from '../../src/time/clock.ts'
import { toIso } from '../../src/time/iso.ts'
import { textOf } from '../database/columns.ts'
import type { Queries, Value, WorkloadDatabase } from '../database/database.ts'
import { rewriteDatabase } from '../database/rewrite.ts'
import { textList } from '../database/text.ts'
import { checkOwner, type Owner } from './memory.ts'

export interface Forgotten {
  /** The ids that were removed, of those that were named. */
  readonly memories: readonly string[]
  /** The ids of what consolidations had written from them, which contains their text: removed too. */
  readonly derived: readonly string[]
  /** Vectors that were removed. */
  readonly vectors: number
  /**
   * False: another process was using the file of SQLite, or `rewrite` was false, so texts and vectors may still be in it. The
   * next call erases them, also if it removes nothing more.
   */
  readonly isErased: boolean
}

export interface ForgetOptions {
  /**
   * Whether a file of SQLite is written anew, which leaves no byte of what was deleted. Writers wait meanwhile. Default: true;
   * false leaves it to a later call, for many owners one after the other.
   */
  readonly rewrite?: boolean
}

const FORGET_NAMES: OptionNames<ForgetOptions> = { rewrite: true }

export interface RemovalOptions {
  readonly database: WorkloadDatabase
  /** Removes vectors and returns how many were there. Null: they cannot be reached from here, and stay noted for a cleanup. */
  readonly removeVectors: ((ids: readonly string[]) => Promise<number>) | null
  /** Leaves no byte of removed vectors, where they are in another file; false if it could not. Default: there is no such file. */
  readonly eraseVectors?: () => Promise<boolean>
  readonly clock?: Clock
}

const VECTORS_PER_CALL = 500

/** Even with 'secure-delete' the index keeps words of deleted rows that were the first of one of its pages. */
const REBUILD_INDEX = `INSERT INTO {memories_fts}(memories_fts) VALUES ('rebuild')`

/**
 * Forgets memories, for programs without `openMemories`.
 *
 * @example
 * const removal = new MemoryRemoval({ database, removeVectors: (ids) => vectors.remove(ids) })
 * await removal.forget({ workspaceId: 'w1', userId: 'ann' }, [id])
 */
export class MemoryRemoval {
  readonly #database: WorkloadDatabase
  readonly #removeVectors: RemovalOptions['removeVectors']
  readonly #eraseVectors: () => Promise<boolean>
  readonly #clock: Clock

  constructor({ database, removeVectors, eraseVectors = async () => true, clock = systemClock }: RemovalOptions) {
    this.#database = database
    this.#removeVectors = removeVectors
    this.#eraseVectors = eraseVectors
    this.#clock = clock
  }

  /**
   * Removes memories of an owner, and what consolidations wrote from them. Memories of others stay, and are not counted. A
   * consolidation that runs meanwhile notices it and starts again without them. A file of SQLite is written anew.
   */
  async forget(owner: Owner, ids: readonly string[], options: ForgetOptions = {}): Promise<Forgotten> {
    refuseUnknown(options, FORGET_NAMES, 'forget')
    const { workspaceId, userId } = checkOwner(owner)
    const now = toIso(this.#clock.nowMs())
    const removed = await this.#database.transaction(async (queries) => {
      // The locks hold back a merge of the same memories, so none can appear below.
      const rows = await queries.rows(
        `SELECT id FROM {memories} WHERE workspace_id = $1 AND user_id = $2 AND id IN ${queries.dialect.texts('$3')}
         ORDER BY id${queries.dialect.forUpdate}`,
        [workspaceId, userId, textList(ids)],
      )
      const memories = rows.map((row) => textOf(row, 'id'))
      const derived = await lockedDerived(queries, memories)
      await removeRows(queries, [...memories, ...derived], now)
      // The other sources of what was removed may be merged again.
      await queries.rows(`DELETE FROM {memory_merges} WHERE target_id IN ${queries.dialect.texts('$1')}`, [
        JSON.stringify(derived),
      ])
      if (queries.dialect.name === 'sqlite') await queries.rows(REBUILD_INDEX)
      return { memories, derived }
    })
    const vectors = await this.removeNoted()
    return { ...removed, vectors, isErased: options.rewrite !== false && (await this.erase()) }
  }

  /** Writes a file of SQLite anew, after calls of `forget` that did not. False if another process was using it: call it again. */
  async erase(): Promise<boolean> {
    const isErased = await rewriteDatabase(this.#database)
    return (await this.#eraseVectors()) && isErased
  }

  /** What would be forgotten. */
  async derivedFrom(ids: readonly string[]): Promise<readonly string[]> {
    return derivedFrom({ dialect: this.#database.dialect, rows: this.#database.read }, ids)
  }

  /**
   * Removes the vectors of memories that are gone, also those that an earlier call could not reach. A memory that was saved
   * again under its id keeps its vector: `removeFormer` is for those.
   */
  removeNoted(signal?: AbortSignal): Promise<number> {
    return this.#removeNoted('NOT EXISTS (SELECT 1 FROM {memories} WHERE id = noted.embedding_id)', [], signal)
  }

  /** Before a memory is embedded: removes what is left of one that had the same id and was forgotten. */
  removeFormer(ids: readonly string[], signal?: AbortSignal): Promise<number> {
    return this.#removeNoted(`embedding_id IN ${this.#database.dialect.texts('$1')}`, [textList(ids)], signal)
  }

  async #removeNoted(condition: string, values: readonly Value[], signal?: AbortSignal): Promise<number> {
    const removeVectors = this.#removeVectors
    if (removeVectors === null) return 0
    let removed = 0
    for (;;) {
      signal?.throwIfAborted()
      const noted = await this.#database.read(
        `SELECT embedding_id FROM {memory_vector_removals} AS noted WHERE ${condition} ORDER BY embedding_id LIMIT ${VECTORS_PER_CALL}`,
        values,
      )
      if (noted.length === 0) return removed
      const ids = noted.map((row) => textOf(row, 'embedding_id'))
      removed += await removeVectors(ids)
      const sql = `DELETE FROM {memory_vector_removals} WHERE embedding_id IN ${this.#database.dialect.texts('$1')}`
      await this.#database.write([{ sql, values: [textList(ids)] }])
    }
  }
}

/** What was written from these memories, and from that in turn. */
async function derivedFrom(queries: Queries, ids: readonly string[]): Promise<readonly string[]> {
  const rows = await queries.rows(
    `WITH RECURSIVE derived(id) AS (
       SELECT target_id FROM {memory_merges} WHERE source_id IN ${queries.dialect.texts('$1')}
       UNION SELECT m.target_id FROM {memory_merges} m JOIN derived ON m.source_id = derived.id
     ) SELECT m.id FROM {memories} m JOIN derived ON m.id = derived.id ORDER BY m.id`,
    [textList(ids)],
  )
  const named = new Set(ids)
  return rows.map((row) => textOf(row, 'id')).filter((id) => !named.has(id))
}

/** In a transaction. A merge of what is derived, which was under way, may have added more by the time its locks are free. */
async function lockedDerived(queries: Queries, ids: readonly string[]): Promise<readonly string[]> {
  for (let known = 0; ; ) {
    const derived = await derivedFrom(queries, ids)
    if (derived.length === known) return derived
    await queries.rows(
      `SELECT id FROM {memories} WHERE id IN ${queries.dialect.texts('$1')} ORDER BY id${queries.dialect.forUpdate}`,
      [textList(derived)],
    )
    known = derived.length
  }
}

/**
 * Removes rows with their full text and notes their vectors. What was written from a removed memory keeps its own row; the
 * record of a removed target stays while its sources do, so that no retry writes it again. A
 * removed target stays recorded as a source too: it leads from its sources to what was written from it.
 */
export async function removeRows(queries: Queries, ids: readonly string[], now: string): Promise<void> {
  const { texts } = queries.dialect
  const listed = textList(ids)
  await queries.rows(
    `INSERT INTO {memory_vector_removals} (embedding_id, removed_at)
     SELECT coalesce(embedding_id, id), $2 FROM {memories} WHERE id IN ${texts('$1')} ON CONFLICT (embedding_id) DO NOTHING`,
    [listed, now],
  )
  await queries.rows(`DELETE FROM {memories} WHERE id IN ${texts('$1')}`, [listed])
  await queries.rows(
    `DELETE FROM {memory_merges} AS merge WHERE source_id IN ${texts('$1')}
     AND NOT EXISTS (SELECT 1 FROM {memory_merges} AS made WHERE made.target_id = merge.source_id)`,
    [listed],
  )
}
