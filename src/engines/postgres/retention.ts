import type { Actor } from '../../engine/dead-letters.ts'
import {
  finishedAs,
  givesUp,
  LATEST_IDLE_MS,
  RETENTION_BY,
  type Retention,
  type RetentionRule,
  type Sweep,
  type SweepStep,
} from '../../engine/retention.ts'
import { type Ended, shownState } from '../../job/states.ts'
import type { PostgresCore } from './core.ts'
import type { Queries } from './database.ts'
import { removeLetter } from './dead-letters.ts'
import { isAwaited } from './dependencies.ts'
import { ms, NOW, rowsFrom } from './fragments.ts'
import { FORGET_IDLE_LATEST } from './latest-keys.ts'
import type { Names } from './names.ts'
import { toState } from './rows.ts'

/** Millrace's ids grow with arrival. The walk follows the primary key and takes no lock. */
export const WALK = ({ jobs }: Names): string => `
SELECT id::text AS id, type, status, ended, ${ms('completed_at')} AS completed_ms, ${NOW} AS now
FROM ${jobs} AS jobs WHERE ($2::text IS NULL OR id::text > $2) AND type IS NOT NULL ORDER BY jobs.id::text LIMIT $3`

const GONE = `job.id::text = gone.id AND ${ms('job.completed_at')} = gone.completed_ms`

const SWEPT = `${rowsFrom('$2::text[]', '$3::float8[]')} AS gone (id, completed_ms)`

/** A job that changed meanwhile stays. */
export const REMOVE_FINISHED = (names: Names): string => `
WITH removed AS (
  DELETE FROM ${names.jobs} AS job USING ${SWEPT}
  WHERE ${GONE} AND (job.status = 'completed' OR job.status = 'failed' AND job.ended IN ('cancelled', 'superseded'))
    AND NOT ${isAwaited(names)} AND ${NOW} IS NOT NULL
  RETURNING job.id),
forgotten AS (
  DELETE FROM ${names.events} AS event USING removed
  WHERE event.job_id::text = removed.id::text AND coalesce(event.data ->> 'table', 'jobs') = 'jobs')
SELECT id::text AS id FROM removed`

/** The given jobs that may be removed. */
export const FIND_REMOVABLE = (names: Names): string => `
SELECT job.id::text AS id, ${NOW} AS now FROM ${names.jobs} AS job JOIN ${SWEPT} ON ${GONE}
WHERE NOT ${isAwaited(names)}`

/** Estimated size of a row without its texts. */
const ROW_BYTES = 400

/** The size of the rows, not of the files: space that vacuum has not returned is free for the next jobs. */
export const USED_BYTES = ({ jobs }: Names): string => `
SELECT coalesce(sum(${ROW_BYTES} + coalesce(octet_length(payload::text), 0) + coalesce(octet_length(result::text), 0)), 0)::float8 AS bytes,
  ${NOW} AS now FROM ${jobs}`

const LATEST_BATCH = 500

export function createRetention(core: PostgresCore): Retention {
  /** The last latest key of this pass. */
  let after: readonly [type: string, latestKey: string] = ['', '']
  return {
    sweep: (rules, step) => sweep(core, rules, step),
    usedBytes: async () => {
      const [row] = await core.call('used bytes', (database) => database.rows<{ bytes: number }>(USED_BYTES))
      return row?.bytes ?? 0
    },
    // The server vacuums by itself.
    compact: async () => {
      const [last] = await core.call('latest keys', (database) =>
        database.rows<{ type: string; latest_key: string; looked: number }>(
          FORGET_IDLE_LATEST,
          ...after,
          LATEST_BATCH,
          LATEST_IDLE_MS,
        ),
      )
      const isEnd = last === undefined || last.looked < LATEST_BATCH
      after = isEnd ? ['', ''] : [last.type, last.latest_key]
      return !isEnd
    },
  }
}

interface Walked {
  readonly id: string
  readonly type: string
  readonly status: string
  readonly ended: Ended | null
  readonly completed_ms: number | null
}

/** A job that may be removed, as the walk found it. */
export interface Candidate {
  readonly id: string
  readonly completedMs: number
}

async function sweep(
  core: PostgresCore,
  rules: readonly RetentionRule[],
  { from, max, dryRun = false, by = RETENTION_BY }: SweepStep,
): Promise<Sweep> {
  const walked = await core.call('sweep', (database) => database.rows<Walked>(WALK, from, max))
  const next = walked.length < max ? null : (walked.at(-1)?.id ?? null)
  const [letters, others] = [toCandidates(walked, rules, true), toCandidates(walked, rules, false)]
  if (dryRun) {
    const found = await core.call('sweep', (database) => findRemovable(database, [...letters, ...others]))
    return { removed: found.length, next }
  }
  const removed = await core.call('sweep', async (database) => {
    const gone = await removeFinished(database, others)
    let count = gone.length
    for (const letter of letters) {
      if (await database.transaction((queries) => removeOldLetter(queries, letter, by))) count += 1
    }
    return count
  })
  if (removed > 0) core.results.notify()
  return { removed, next }
}

/** Letters, dead or discarded, are removed with an audit entry. */
function toCandidates(
  walked: readonly Walked[],
  rules: readonly RetentionRule[],
  areLetters: boolean,
): readonly Candidate[] {
  return walked.flatMap(({ id, type, status, ended, completed_ms: completedMs }) => {
    const what = finishedAs(shownState(toState(status), ended))
    if (what === null || completedMs === null || !givesUp(rules, { what, type, completedAtMs: completedMs })) return []
    return (what === 'dead' || ended === 'discarded') === areLetters ? [{ id, completedMs }] : []
  })
}

function columnsOf(candidates: readonly Candidate[]): readonly [readonly string[], readonly number[]] {
  return [candidates.map(({ id }) => id), candidates.map(({ completedMs }) => completedMs)]
}

function findRemovable(queries: Queries, candidates: readonly Candidate[]): Promise<readonly { id: string }[]> {
  return queries.rows<{ id: string }>(FIND_REMOVABLE, ...columnsOf(candidates))
}

/** Removes jobs with their history in one statement. Returns those removed. */
export async function removeFinished(
  queries: Queries,
  candidates: readonly Candidate[],
): Promise<readonly { id: string }[]> {
  if (candidates.length === 0) return []
  return queries.rows<{ id: string }>(REMOVE_FINISHED, ...columnsOf(candidates))
}

/** Checks again, in a transaction: it may have been replayed, undone or replaced meanwhile. */
export async function removeOldLetter(queries: Queries, letter: Candidate, by: Actor): Promise<boolean> {
  const [found] = await findRemovable(queries, [letter])
  return found !== undefined && removeLetter(queries, letter.id, by)
}
