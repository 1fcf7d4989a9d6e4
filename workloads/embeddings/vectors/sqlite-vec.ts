/** The functions of the sqlite-vec extension, for generations that do not fit into the memory that was allowed. */
import { DatabaseSync } from 'node:sqlite'
import { textOf } from '../../database/columns.ts'
import type { WorkloadDatabase } from '../../database/database.ts'
import { type Best, othersTurn } from './matrix.ts'

/** Row numbers of one statement: about 6 ms with 384 dimensions. */
const NUMBERS_PER_STATEMENT = 2_000

export interface SqliteVec {
  readonly version: string
  search(table: string, direction: Float32Array, best: Best): Promise<void>
  close(): void
}

/** Null where the package is not installed, or has no binary for this machine. */
export async function openSqliteVec(database: WorkloadDatabase): Promise<SqliteVec | null> {
  const [row] = await database.read(`SELECT file FROM pragma_database_list WHERE name = 'main'`)
  const handle = new DatabaseSync(textOf(row ?? {}, 'file'), { readOnly: true, allowExtension: true })
  try {
    const { load } = await import('sqlite-vec')
    load(handle)
    handle.enableLoadExtension(false)
    const { version } = handle.prepare('SELECT vec_version() AS version').get() ?? {}
    return { version: String(version), close: () => handle.close(), search: searchOn(handle) }
  } catch {
    handle.close()
    return null
  }
}

function searchOn(handle: DatabaseSync): SqliteVec['search'] {
  return async (name, direction, best) => {
    const table = name.slice(1, -1)
    const end = Number(handle.prepare(`SELECT coalesce(max(number), 0) AS last FROM ${table}`).get()?.last)
    const nearest = handle.prepare(
      `SELECT number, 1 - vec_distance_cosine(embedding, ?) AS score FROM ${table} WHERE number > ? AND number <= ?`,
    )
    const bytes = new Uint8Array(direction.buffer, direction.byteOffset, direction.byteLength)
    for (let start = 0; start < end; start += NUMBERS_PER_STATEMENT) {
      for (const row of nearest.all(bytes, start, start + NUMBERS_PER_STATEMENT)) {
        best.offer(Number(row.number), Number(row.score))
      }
      await othersTurn()
    }
  }
}
