import { numberOf } from '../../database/columns.ts'
import type { Row, WorkloadDatabase } from '../../database/database.ts'
import type { Optimizable } from '../../embeddings/index-optimization.ts'

/** Pages of the index that one transaction of SQLite writes. */
const PAGES = 200

/**
 * The full text of memories, for `index-optimization`. SQLite merges the segments of its index, in short transactions. Postgres
 * vacuums the table when the share of its rows that are alive is below `threshold`.
 *
 * @example
 * const done = await memoriesFullText(database).optimize({ threshold: 0.8, signal })
 */
export function memoriesFullText(database: WorkloadDatabase): Optimizable {
  const optimize = { sqlite: mergeSegments, postgres: vacuum }[database.dialect.name]
  return { name: 'memories-full-text', optimize: ({ threshold, signal }) => optimize(database, threshold, signal) }
}

async function mergeSegments(
  database: WorkloadDatabase,
  _threshold: number,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const changes = (rows: readonly Row[] | undefined): number => numberOf(rows?.[0] ?? {}, 'n')
  const count = { sql: 'SELECT total_changes() AS n' }
  const merge = (pages: number) => ({
    sql: `INSERT INTO {memories_fts}(memories_fts, rank) VALUES ('merge', ${pages})`,
  })
  // A negative number begins to merge all segments into one; fewer than two changes mean that nothing is left to do.
  for (let [steps, pages] = [0, -PAGES]; ; steps += 1, pages = PAGES) {
    signal.throwIfAborted()
    const [before, , after] = await database.write([count, merge(pages), count])
    if (changes(after) - changes(before) < 2) return [`merged the segments of memories_fts in ${steps} steps`]
  }
}

async function vacuum(database: WorkloadDatabase, threshold: number, signal: AbortSignal): Promise<readonly string[]> {
  signal.throwIfAborted()
  const [row = {}] = await database.read(
    `SELECT n_live_tup AS live, n_dead_tup AS dead FROM pg_stat_user_tables WHERE relid = to_regclass('{memories}')`,
  )
  const [live, dead] = [numberOf(row, 'live'), numberOf(row, 'dead')]
  const counts = `${live} rows of memories are alive and ${dead} are dead`
  if (live >= threshold * (live + dead)) return [counts]
  await database.read('VACUUM (ANALYZE) {memories}')
  return [`${counts}: vacuumed`]
}
