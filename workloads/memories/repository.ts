/** Memories in tables. Every call names the owner, and sees nothing else. */
import type { Transaction } from '../../src/engine/engine.ts'
import { OptionError } from '../../src/errors.ts'
import { type OptionNames, refuseUnknown } from '../../src/job/known-options.ts'
import { checkListLimit } from '../../src/job/list-limit.ts'
import { type Clock, systemClock } from '../../src/time/clock.ts'
import { toIso } from '../../src/time/iso.ts'
import { dateOf, jsonOf, maybe, numberOf, textOf } from '../database/columns.ts'
import type { Queries, Row, Value, WorkloadDatabase } from '../database/database.ts'
import { textList } from '../database/text.ts'
import {
  type CheckedMemory,
  checkImportance,
  checkMemory,
  checkOwner,
  type Memory,
  type NewMemory,
  type Owner,
} from './memory.ts'
import { Merges } from './merges.ts'

export const MEMORY_COLUMNS = `id, workspace_id, user_id, type, content, importance, embedding_id, source_type, source_id, metadata,
  version, created_at, updated_at, expires_at`

const OWNED = 'workspace_id = $1 AND user_id = $2'

const SAVE = (metadata: string): string => `INSERT INTO {memories} AS m
  (id, workspace_id, user_id, type, content, importance, source_type, source_id, metadata, expires_at, created_at, updated_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, ${metadata}, $10, $11, $11)
ON CONFLICT (id) DO UPDATE SET
  type = excluded.type, content = excluded.content, importance = excluded.importance, source_type = excluded.source_type,
  source_id = excluded.source_id, metadata = excluded.metadata, expires_at = excluded.expires_at, updated_at = excluded.updated_at,
  version = CASE WHEN m.content = excluded.content THEN m.version ELSE m.version + 1 END,
  embedding_id = CASE WHEN m.content = excluded.content THEN m.embedding_id END,
  merged_at = CASE WHEN m.content = excluded.content THEN m.merged_at END
WHERE m.workspace_id = excluded.workspace_id AND m.user_id = excluded.user_id
RETURNING ${MEMORY_COLUMNS}`

export function readMemory(row: Row): Memory {
  return {
    id: textOf(row, 'id'),
    workspaceId: textOf(row, 'workspace_id'),
    userId: textOf(row, 'user_id'),
    type: textOf(row, 'type'),
    content: textOf(row, 'content'),
    importance: numberOf(row, 'importance'),
    embeddingId: maybe(textOf, row, 'embedding_id'),
    sourceType: textOf(row, 'source_type'),
    sourceId: maybe(textOf, row, 'source_id'),
    metadata: Object(jsonOf(row, 'metadata')),
    version: numberOf(row, 'version'),
    createdAt: dateOf(row, 'created_at'),
    updatedAt: dateOf(row, 'updated_at'),
    expiresAt: maybe(dateOf, row, 'expires_at'),
  }
}

export interface ListOptions {
  /** Default: every type. */
  readonly type?: string
  /** Default: 50. */
  readonly limit?: number
}

const LIST_NAMES: OptionNames<ListOptions> = { type: true, limit: true }

/**
 * Memories by owner.
 *
 * @example
 * const repository = new MemoryRepository(await openMemoryTables('sqlite:./memories.db'))
 * const latest = await repository.list({ workspaceId: 'w1', userId: 'ann' }, { limit: 10 })
 */
export class MemoryRepository {
  readonly database: WorkloadDatabase
  /** What consolidations have merged. */
  readonly merges: Merges
  readonly #clock: Clock

  constructor(database: WorkloadDatabase, { clock = systemClock }: { readonly clock?: Clock } = {}) {
    this.database = database
    this.#clock = clock
    this.merges = new Merges(database, clock)
  }

  /** In the order of the ids, each once. Ids of other owners and unknown ones are left out. */
  async findByIds(ids: readonly string[], owner: Owner): Promise<readonly Memory[]> {
    const { workspaceId, userId } = checkOwner(owner)
    const rows = await this.database.read(
      `SELECT ${MEMORY_COLUMNS} FROM {memories} WHERE ${OWNED} AND id IN ${this.database.dialect.texts('$3')}`,
      [workspaceId, userId, textList(ids)],
    )
    const found = new Map(rows.map((row) => [textOf(row, 'id'), readMemory(row)]))
    return [...new Set(ids)].flatMap((id) => found.get(id) ?? [])
  }

  /** The latest first. */
  async list(owner: Owner, options: ListOptions = {}): Promise<readonly Memory[]> {
    const { workspaceId, userId } = checkOwner(owner)
    refuseUnknown(options, LIST_NAMES, 'list')
    const { type, limit = 50 } = options
    const typed = type === undefined ? '' : 'AND type = $4'
    const rows = await this.database.read(
      `SELECT ${MEMORY_COLUMNS} FROM {memories} WHERE ${OWNED} ${typed} ORDER BY created_at DESC, seq DESC LIMIT $3`,
      [workspaceId, userId, checkListLimit(limit), ...(type === undefined ? [] : [type])],
    )
    return rows.map(readMemory)
  }

  /** The latest memories that are not syntheses and whose current text has not been merged yet. */
  async unmerged(owner: Owner, limit: number): Promise<readonly string[]> {
    const { workspaceId, userId } = checkOwner(owner)
    const rows = await this.database.read(
      `SELECT id FROM {memories} WHERE ${OWNED} AND type <> 'semantic' AND merged_at IS NULL
       ORDER BY created_at DESC, seq DESC LIMIT $3`,
      [workspaceId, userId, limit],
    )
    return rows.map((row) => textOf(row, 'id')).toReversed()
  }

  /** Adds a memory, or changes that of the same id and owner. A changed text loses its vector until it is embedded again, and can be merged again. */
  async save(memory: NewMemory, within?: Transaction): Promise<Memory> {
    const [saved] = await this.saveAll([memory], within)
    if (saved === undefined) throw new OptionError('no memory was given; give one with an owner and a content')
    return saved
  }

  /** All of them or none. */
  async saveAll(memories: readonly NewMemory[], within?: Transaction): Promise<readonly Memory[]> {
    const checked = memories.map(checkMemory)
    const queries = within === undefined ? null : this.database.on(within)
    return queries === null
      ? this.database.transaction((transaction) => this.#saveOn(transaction, checked))
      : this.#saveOn(queries, checked)
  }

  async #saveOn(queries: Queries, memories: readonly CheckedMemory[]): Promise<readonly Memory[]> {
    const now = toIso(this.#clock.nowMs())
    const saved: Memory[] = []
    for (const memory of memories) {
      const [row] = await queries.rows(SAVE(queries.dialect.json('$9')), valuesOf(memory, now))
      if (row === undefined)
        throw new OptionError(`the id '${memory.id}' cannot be used here; leave it out for a new one`)
      saved.push(readMemory(row))
    }
    return saved
  }

  /** False if the owner has no such memory. */
  async updateImportance(id: string, importance: number, owner: Owner): Promise<boolean> {
    const { workspaceId, userId } = checkOwner(owner)
    const sql = `UPDATE {memories} SET importance = $4, updated_at = $5 WHERE ${OWNED} AND id = $3 RETURNING id`
    const values = [workspaceId, userId, id, checkImportance(importance), toIso(this.#clock.nowMs())]
    const [changed = []] = await this.database.write([{ sql, values }])
    return changed.length === 1
  }

  /** Notes that the vectors of these versions are stored, and returns the memories that are still there. */
  async markEmbedded(memories: readonly Pick<Memory, 'id' | 'version'>[]): Promise<readonly string[]> {
    const marked = await this.database.write(
      memories.map(({ id, version }) => ({
        sql: `UPDATE {memories} SET embedding_id = CASE WHEN version = $2 THEN id ELSE embedding_id END WHERE id = $1 RETURNING id`,
        values: [id, version],
      })),
    )
    return marked.flatMap((rows) => rows.map((row) => textOf(row, 'id')))
  }

  /** The texts of memories of any owner, in order; null for those that are gone. For jobs that serve all owners. */
  async contents(ids: readonly string[]): Promise<readonly (string | null)[]> {
    const rows = await this.database.read(
      `SELECT id, content FROM {memories} WHERE id IN ${this.database.dialect.texts('$1')}`,
      [textList(ids)],
    )
    const found = new Map(rows.map((row) => [textOf(row, 'id'), textOf(row, 'content')]))
    return ids.map((id) => found.get(id) ?? null)
  }
}

function valuesOf(memory: CheckedMemory, now: string): readonly Value[] {
  const { id, workspaceId, userId, type, content, importance, sourceType, sourceId, metadata, expiresAt } = memory
  return [id, workspaceId, userId, type, content, importance, sourceType, sourceId, metadata, expiresAt, now]
}
