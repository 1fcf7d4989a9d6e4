import type { Actor } from '../../engine/dead-letters.ts'
import {
  finishedAs,
  givesUp,
  RETENTION_BY,
  type Retention,
  type RetentionRule,
  type Sweep,
  type SweepStep,
} from '../../engine/retention.ts'
import { type Ended, type StoredState, shownState } from '../../job/states.ts'
import { systemClock } from '../../time/clock.ts'
import { fromIso } from '../../time/iso.ts'
import type { SqliteCore } from './core.ts'
import type { Connection } from './database.ts'
import { removeLetter } from './dead-letters.ts'
import { IS_AWAITED } from './dependencies.ts'
import { findRow } from './inspector.ts'
import { latestKeys } from './latest-keys.ts'
import { forgetTags } from './tags.ts'

/** Rowids grow with arrival. No index serves retention alone, because every job would pay for it. Reading takes no lock. */
export const WALK = `
SELECT rowid, id, type, status, ended, completed_at FROM job_queue WHERE rowid > :from ORDER BY rowid LIMIT :max`

export const IS_KEPT_FOR_OTHERS = `SELECT 1 AS found FROM job_queue WHERE id = :id AND ${IS_AWAITED}`

/** Rows are [rowid, id, completed_at]. A job that changed meanwhile stays. */
export const REMOVE_FINISHED = `
DELETE FROM job_queue WHERE rowid IN (
  SELECT job_queue.rowid FROM json_each(:rows) AS gone CROSS JOIN job_queue ON job_queue.rowid = gone.value ->> 0
  WHERE job_queue.id = gone.value ->> 1 AND completed_at = gone.value ->> 2 AND NOT ${IS_AWAITED}
    AND (status = 'completed' OR (status = 'dead_letter' AND ended IN ('cancelled', 'superseded'))))
RETURNING id, options`

export const REMOVE_EVENTS_OF = `DELETE FROM job_events WHERE job_id IN (SELECT value FROM json_each(:ids))`

export const PAGES = `
SELECT page_count AS pages, freelist_count AS free, page_size AS bytes, auto_vacuum AS vacuum
FROM pragma_page_count, pragma_freelist_count, pragma_page_size, pragma_auto_vacuum`

/** Moves the last pages of the file into free pages. */
function vacuumPages(count: number): string {
  return `PRAGMA incremental_vacuum(${count})`
}

/** Longer transactions delay callers that wait for the lock. */
const TRANSACTION_MS = 4
/** The share of free pages that stays in the file for the next jobs. */
const RESERVE = 0.1

export function createRetention(core: SqliteCore): Retention {
  const removals = new AdaptiveBatch({ least: 10, most: 500, aimMs: TRANSACTION_MS })
  const keys = latestKeys(core)
  const vacuums = new AdaptiveBatch({ least: 8, most: 400, aimMs: TRANSACTION_MS })
  return {
    sweep: (rules, step) => sweep(core, removals, rules, step),
    usedBytes: () => core.read('used bytes', () => usedBytes(core.connection)),
    compact: async () => (await keys.forgetIdle()) || compact(core, vacuums),
  }
}

/** One row of WALK. */
type Walked = [
  rowid: number,
  id: string,
  type: string,
  status: StoredState,
  ended: Ended | null,
  completedAt: string | null,
]

interface Candidate {
  readonly rowid: number
  readonly id: string
  readonly completedAt: string
  /** Dead or discarded: its removal needs an audit entry. */
  readonly isLetter: boolean
}

/**
 * Walks over all jobs by rowid and does not stop at the first young one: a newer version of a latest key has the place of
 * the older one, and other programs write their own times.
 */
async function sweep(
  core: SqliteCore,
  batch: AdaptiveBatch,
  rules: readonly RetentionRule[],
  { from, max, dryRun = false, by = RETENTION_BY }: SweepStep,
): Promise<Sweep> {
  const walked = await core.read('sweep', () => walk(core.connection, Number(from ?? 0), max))
  const candidates = walked.flatMap((row) => toCandidate(row, rules))
  const last = walked.length < max ? undefined : walked.at(-1)
  const next = last === undefined ? null : String(last[0])
  if (dryRun) return { removed: await core.read('sweep', () => countRemovable(core.connection, candidates)), next }
  let removed = 0
  for (let index = 0; index < candidates.length; ) {
    const part = candidates.slice(index, index + batch.size)
    index += part.length
    // After a power cut the next sweep finds the same jobs, so this does not wait for the disk.
    removed += await core.writeVolatile('sweep', () => batch.timed(part.length, () => remove(core, part, by)))
  }
  return { removed, next }
}

function walk(connection: Connection, from: number, max: number): Walked[] {
  return connection.prepareArrays(WALK).all({ from, max }) as Walked[]
}

function toCandidate([rowid, id, type, status, ended, completedAt]: Walked, rules: readonly RetentionRule[]) {
  const what = finishedAs(shownState(status, ended))
  if (what === null || completedAt === null) return []
  // An unreadable time compares as false, and such a job stays.
  if (!givesUp(rules, { what, type, completedAtMs: fromIso(completedAt) })) return []
  return [{ rowid, id, completedAt, isLetter: what === 'dead' || ended === 'discarded' } satisfies Candidate]
}

function countRemovable(connection: Connection, candidates: readonly Candidate[]): number {
  return candidates.filter(({ id }) => !isKeptForOthers(connection, id)).length
}

function isKeptForOthers(connection: Connection, id: string): boolean {
  return connection.prepare(IS_KEPT_FOR_OTHERS).get({ id }) !== undefined
}

/** Inside a write transaction. Checks each job again: it may have been replayed, undone or replaced meanwhile. */
function remove(core: SqliteCore, candidates: readonly Candidate[], by: Actor): number {
  const letters = candidates.filter(({ isLetter }) => isLetter)
  const others = candidates.filter(({ isLetter }) => !isLetter)
  const removed = letters.filter(
    ({ id, completedAt }) =>
      findRow(core, id)?.completed_at === completedAt &&
      !isKeptForOthers(core.connection, id) &&
      removeLetter(core, id, by),
  )
  return removed.length + removeFinished(core.connection, others).length
}

/** Removes jobs with their history, inside a write transaction. Returns the ids of those removed. */
export function removeFinished(
  connection: Connection,
  jobs: readonly { readonly rowid: number; readonly id: string; readonly completedAt: string }[],
): readonly string[] {
  if (jobs.length === 0) return []
  const rows = JSON.stringify(jobs.map(({ rowid, id, completedAt }) => [rowid, id, completedAt]))
  const removed = connection.prepareArrays(REMOVE_FINISHED).all({ rows }) as [id: string, options: string | null][]
  const ids = removed.map(([id]) => id)
  forgetTags(
    connection,
    removed.map(([id, options]) => ({ id, options })),
  )
  connection.prepare(REMOVE_EVENTS_OF).run({ ids: JSON.stringify(ids) })
  return ids
}

interface Pages {
  readonly pages: number
  readonly free: number
  readonly bytes: number
  /** 2: incremental. */
  readonly vacuum: number
}

export function readPages(connection: Connection): Pages {
  return connection.prepare(PAGES).get() as Pages
}

function usedBytes(connection: Connection): number {
  const { pages, free, bytes } = readPages(connection)
  return (pages - free) * bytes
}

/** Also false for a file made in another vacuum mode: its free pages are reused but never given back. */
async function compact(core: SqliteCore, batch: AdaptiveBatch): Promise<boolean> {
  const excess = await core.read('compact', () => excessPages(core.connection))
  if (excess <= 0) return false
  const count = Math.min(excess, batch.size)
  await core.writeVolatile('compact', () => batch.timed(count, () => core.connection.exec(vacuumPages(count))))
  return excess > count
}

function excessPages(connection: Connection): number {
  const { pages, free, vacuum } = readPages(connection)
  return vacuum === 2 ? free - Math.ceil(pages * RESERVE) : 0
}

/** Sizes the work of one transaction so that it takes about `aimMs` on any machine and with any rows. */
export class AdaptiveBatch {
  readonly #least: number
  readonly #most: number
  readonly #aimMs: number
  #size: number

  constructor({ least, most, aimMs }: { readonly least: number; readonly most: number; readonly aimMs: number }) {
    this.#least = least
    this.#most = most
    this.#aimMs = aimMs
    this.#size = least
  }

  get size(): number {
    return this.#size
  }

  /** Runs `work` on `count` items and adapts the size of the next batch to the time it took. */
  timed<Value>(count: number, work: () => Value): Value {
    const startedAtMs = systemClock.monotonicMs()
    const value = work()
    this.#adapt(count, systemClock.monotonicMs() - startedAtMs)
    return value
  }

  /** Grows by at most half at a time, because one fast transaction says little about the next. */
  #adapt(count: number, tookMs: number): void {
    const fitting = tookMs > 0 ? (count * this.#aimMs) / tookMs : this.#most
    const next = Math.floor(Math.min(fitting, this.#size * 1.5 + 1))
    // A small last batch is no reason to shrink.
    if (count < this.#size && next > count) return
    this.#size = Math.max(this.#least, Math.min(this.#most, next))
  }
}
