/**
 * The move of a namespace to another model. A second generation is built beside the active one, which is read and written as
 * before. What was copied, and from which state of its row, is kept in the rows themselves, so a move can stop at any point and
 * go on later: whatever was written meanwhile differs and is copied again. At the end one transaction switches.
 */
import { jsonOf, maybe, numberOf, textOf } from '../../database/columns.ts'
import type { Queries, WorkloadTransaction } from '../../database/database.ts'
import { type Metadata, VectorsRefused } from '../vector-store.ts'
import { checkKind } from './generations.ts'
import type { SqlVectorStore } from './store.ts'
import { type Generation, tableOf } from './tables.ts'

export interface MovingEntry {
  readonly id: string
  readonly metadata: Metadata
  readonly seq: number
  readonly versionId: string | null
  /** The state of the row that was read. */
  readonly change: number
}

export interface MovedEntry extends MovingEntry {
  readonly vector: Float32Array
}

export interface MoveState {
  readonly active: Generation
  readonly building: Generation | null
}

export class NamespaceMove {
  readonly #store: SqlVectorStore
  readonly #namespace: string
  /** What the namespace moves to. */
  readonly #model: string

  constructor(store: SqlVectorStore, namespace: string, model: string) {
    this.#store = store
    this.#namespace = namespace
    this.#model = model
  }

  /** Null if the namespace does not exist. */
  async state(): Promise<MoveState | null> {
    const own = (await this.#store.generations.all()).filter(({ namespace }) => namespace === this.#namespace)
    const active = own.find(({ state }) => state === 'active')
    if (active === undefined) return null
    return { active, building: own.find(({ state }) => state === 'building') ?? null }
  }

  /** Entries whose present state is not copied yet, starting at this change, without those that have no text. */
  async next(cursor: number, limit: number, without: ReadonlySet<string>): Promise<readonly MovingEntry[]> {
    const state = await this.state()
    if (state === null || this.#hasEnded(state.active)) return []
    const { dialect, read } = this.#store.database
    return remaining({ dialect, rows: read }, state, { cursor, limit, without })
  }

  /** Rows that were changed or removed since they were read are left out; the next call of `next` returns those that are left. */
  put(dimensions: number, entries: readonly MovedEntry[]): Promise<void> {
    const { database, generations, tables } = this.#store
    const kind = { model: this.#model, dimensions }
    return database.transaction(async (transaction) => {
      const active = await generations.locked(transaction, this.#namespace, 'active')
      if (active === null || this.#hasEnded(active)) return
      const building = await generations.lockedOrNew(transaction, this.#namespace, 'building', kind)
      checkKind(building, kind)
      const current = await transaction.rows(
        `SELECT id, change FROM ${tableOf(active.generation)} WHERE id IN ${transaction.dialect.texts('$1')}`,
        [JSON.stringify(entries.map(({ id }) => id))],
      )
      const changes = new Map(current.map((row) => [textOf(row, 'id'), numberOf(row, 'change')]))
      const unchanged = entries.filter(({ id, change }) => changes.get(id) === change)
      await tables.put(
        transaction,
        building,
        unchanged.map(({ metadata, ...entry }) => ({ ...entry, metadata: JSON.stringify(metadata) })),
        changes,
      )
    })
  }

  /** Makes the new generation the active one, if nothing is left to copy. False if there is. */
  finish(without: ReadonlySet<string>): Promise<boolean> {
    const { database, generations } = this.#store
    return database.transaction(async (transaction) => {
      // Writers wait from here on, and then write to the new generation.
      const lock = transaction.dialect.forUpdate
      const active = await generations.locked(transaction, this.#namespace, 'active', lock)
      if (active === null || this.#hasEnded(active)) return true
      const building = await generations.locked(transaction, this.#namespace, 'building', lock)
      if (building !== null && building.model !== this.#model) throw underWay(this.#namespace, building.model)
      if ((await remaining(transaction, { active, building }, { cursor: 0, limit: 1, without })).length > 0)
        return false
      await this.#switch(transaction, active, building)
      return true
    })
  }

  /** Another process can have ended the same move. Its vectors would otherwise be copied once more. */
  #hasEnded({ model }: Generation): boolean {
    return model === this.#model
  }

  async #switch(transaction: WorkloadTransaction, active: Generation, building: Generation | null): Promise<void> {
    const { generations } = this.#store
    await generations.setState(transaction, active.generation, 'retired')
    // Without entries there is nothing to keep: the next writer decides what the namespace holds.
    if (building === null) return
    // Removed while they were copied.
    await transaction.rows(
      `DELETE FROM ${tableOf(building.generation)} WHERE id NOT IN (SELECT id FROM ${tableOf(active.generation)})`,
    )
    await generations.setState(transaction, building.generation, 'active')
  }

  /** Throws away what was copied for another model. */
  abandon(): Promise<void> {
    const { database, generations } = this.#store
    return database.transaction(async (transaction) => {
      const building = await generations.locked(transaction, this.#namespace, 'building', transaction.dialect.forUpdate)
      if (building !== null) await generations.drop(transaction, building.generation)
    })
  }

  async count(generation: Generation): Promise<number> {
    const [row] = await this.#store.database.read(`SELECT count(*) AS count FROM ${tableOf(generation.generation)}`)
    return numberOf(row ?? {}, 'count')
  }
}

interface Remaining {
  readonly cursor: number
  readonly limit: number
  readonly without: ReadonlySet<string>
}

async function remaining(
  { rows, dialect }: Queries,
  { active, building }: MoveState,
  { cursor, limit, without }: Remaining,
): Promise<readonly MovingEntry[]> {
  const copied =
    building === null
      ? ''
      : `AND NOT EXISTS (SELECT 1 FROM ${tableOf(building.generation)} AS made
           WHERE made.id = source.id AND made.source_change = source.change)`
  const found = await rows(
    `SELECT id, seq, version_id, metadata, change FROM ${tableOf(active.generation)} AS source
     WHERE change >= $1 AND id NOT IN ${dialect.texts('$2')} ${copied} ORDER BY change, id LIMIT ${limit}`,
    [cursor, JSON.stringify([...without])],
  )
  return found.map((row) => ({
    id: textOf(row, 'id'),
    seq: numberOf(row, 'seq'),
    versionId: maybe(textOf, row, 'version_id'),
    metadata: jsonOf(row, 'metadata') as Metadata,
    change: numberOf(row, 'change'),
  }))
}

/** A move to another model that has not ended. */
export function underWay(namespace: string, model: string | null): VectorsRefused {
  return new VectorsRefused(
    `the namespace '${namespace}' is moving to the model '${model}'; let that job end, or give 'restart' to begin again with this model`,
  )
}
