/** Which memories were merged into which. A merge is the new memory, its record and the halved importances, in one transaction. */
import type { Clock } from '../../src/time/clock.ts'
import { toIso } from '../../src/time/iso.ts'
import { numberOf, textOf } from '../database/columns.ts'
import type { Queries, Row, WorkloadDatabase } from '../database/database.ts'
import type { Memory, Owner } from './memory.ts'

/** What the transaction is given. The importance is computed in it, from the rows that it has locked. */
export interface Merge {
  readonly owner: Owner
  readonly jobId: string
  readonly consolidationType: string
  /** As the model has read them. */
  readonly sources: readonly Pick<Memory, 'id' | 'content'>[]
  readonly target: { readonly id: string; readonly content: string; readonly confidence: number }
  /** Whether the sources lose half of their importance. */
  readonly halves: boolean
}

export interface Merged {
  readonly targetId: string
  readonly sourceIds: readonly string[]
  readonly jobId: string
}

/** A source was changed or forgotten while the model read it. An ordinary error: the next attempt reads again. */
export class MemoriesChanged extends Error {
  override readonly name = 'MemoriesChanged'
}

const LOCK = ({ dialect }: Queries): string => `SELECT id, content, importance, version FROM {memories}
WHERE workspace_id = $1 AND user_id = $2 AND id IN ${dialect.texts('$3')} ORDER BY id${dialect.forUpdate}`

const INSERT_TARGET = ({ dialect }: Queries): string => `INSERT INTO {memories}
  (id, workspace_id, user_id, type, content, importance, source_type, source_id, metadata, created_at, updated_at)
VALUES ($1, $2, $3, 'semantic', $4, $5, 'consolidation', $6, ${dialect.json('$7')}, $8, $8)`

const INSERT_SOURCE = `INSERT INTO {memory_merges}
  (target_id, source_id, source_version, workspace_id, user_id, consolidation_type, job_id, merged_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`

/** Only the first merge that takes a text in halves its memory. */
const HALVE = ({
  dialect,
}: Queries): string => `UPDATE {memories} SET importance = importance * 0.5, merged_at = $4, updated_at = $4
WHERE workspace_id = $1 AND user_id = $2 AND id IN ${dialect.texts('$3')} AND merged_at IS NULL`

export class Merges {
  readonly #database: WorkloadDatabase
  readonly #queries: Queries
  readonly #clock: Clock

  constructor(database: WorkloadDatabase, clock: Clock) {
    this.#database = database
    this.#queries = { dialect: database.dialect, rows: database.read }
    this.#clock = clock
  }

  /** What earlier attempts of this job have merged. */
  async ofJob(jobId: string, { workspaceId, userId }: Owner): Promise<readonly Merged[]> {
    const rows = await this.#database.read(
      `SELECT target_id, source_id FROM {memory_merges} WHERE job_id = $1 AND workspace_id = $2 AND user_id = $3
       ORDER BY target_id, source_id`,
      [jobId, workspaceId, userId],
    )
    return Object.entries(Object.groupBy(rows, (row) => textOf(row, 'target_id'))).map(([targetId, sources = []]) => ({
      ...{ targetId, jobId },
      sourceIds: sources.map((row) => textOf(row, 'source_id')),
    }))
  }

  /** A merge of the same type that has all of these sources as they are now, or more. Merging them again would say nothing new. */
  find(owner: Owner, consolidationType: string, sourceIds: readonly string[]): Promise<Merged | null> {
    return findMerge(this.#queries, owner, consolidationType, sourceIds)
  }

  /**
   * Writes the new memory, records what it was made from, and halves the sources. A consolidation of the same memories that
   * runs at the same time waits for the locks of the rows and then finds this merge: it is returned instead of a second one.
   */
  merge(merge: Merge): Promise<Merged> {
    return this.#database.transaction((queries) => this.#mergeOn(queries, merge))
  }

  async #mergeOn(queries: Queries, merge: Merge): Promise<Merged> {
    const { owner, jobId, consolidationType, sources, target } = merge
    const sourceIds = sources.map(({ id }) => id)
    const owned = [owner.workspaceId, owner.userId]
    const locked = await queries.rows(LOCK(queries), [...owned, JSON.stringify(sourceIds)])
    checkUnchanged(sources, locked)
    const earlier = await findMerge(queries, owner, consolidationType, sourceIds)
    if (earlier !== null) return earlier
    const now = toIso(this.#clock.nowMs())
    const metadata = { sourceMemoryIds: sourceIds, consolidationType, synthesisConfidence: target.confidence }
    const importance = Math.max(...locked.map((row) => numberOf(row, 'importance')))
    await queries.rows(INSERT_TARGET(queries), [
      ...[target.id, ...owned, target.content, importance, jobId, JSON.stringify(metadata), now],
    ])
    for (const row of locked) {
      const source = [textOf(row, 'id'), numberOf(row, 'version')]
      await queries.rows(INSERT_SOURCE, [target.id, ...source, ...owned, consolidationType, jobId, now])
    }
    if (merge.halves) await queries.rows(HALVE(queries), [...owned, JSON.stringify(sourceIds), now])
    return { targetId: target.id, sourceIds, jobId }
  }
}

async function findMerge(
  queries: Queries,
  { workspaceId, userId }: Owner,
  consolidationType: string,
  sourceIds: readonly string[],
): Promise<Merged | null> {
  const [row] = await queries.rows(
    `SELECT target_id, min(job_id) AS job_id FROM {memory_merges} AS merge
     JOIN {memories} AS source ON source.id = merge.source_id AND source.version = merge.source_version
     WHERE merge.workspace_id = $1 AND merge.user_id = $2 AND consolidation_type = $3
     AND merge.source_id IN ${queries.dialect.texts('$4')}
     GROUP BY target_id HAVING count(*) = $5 ORDER BY target_id LIMIT 1`,
    [workspaceId, userId, consolidationType, JSON.stringify(sourceIds), sourceIds.length],
  )
  return row === undefined ? null : { targetId: textOf(row, 'target_id'), sourceIds, jobId: textOf(row, 'job_id') }
}

function checkUnchanged(sources: Merge['sources'], locked: readonly Row[]): void {
  const contents = new Map(locked.map((row) => [textOf(row, 'id'), textOf(row, 'content')]))
  const changed = sources.find(({ id, content }) => contents.get(id) !== content)
  if (changed === undefined) return
  throw new MemoriesChanged(
    `the memory ${changed.id} was changed or forgotten while it was consolidated; the next attempt reads the memories again`,
  )
}
