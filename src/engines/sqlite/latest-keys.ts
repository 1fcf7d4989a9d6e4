import { LATEST_IDLE_MS } from '../../engine/retention.ts'
import { toIso } from '../../time/iso.ts'
import type { SqliteCore } from './core.ts'
import type { Connection } from './database.ts'
import { reviewSuccessors } from './dependencies.ts'
import { recordEvent } from './history.ts'
import type { ViewRow } from './rows.ts'
import { KEY_RELEASED, UNLEASED } from './rows.ts'

/** The next keys after one, and whether a job of each may still run: it waits, runs, or may be replayed. */
const LATEST = `
SELECT type, latest_key, idle_since, EXISTS (
  SELECT 1 FROM job_queue WHERE job_queue.type = job_latest.type AND job_queue.latest_key = job_latest.latest_key
    AND (status <> 'completed' AND ended IS NULL OR ended = 'discarded')) AS used
FROM job_latest`

export const FIND_LATEST_KEY = `${LATEST} WHERE type = :type AND latest_key = :latestKey`

export const WALK_LATEST = `
${LATEST} WHERE (type, latest_key) > (:type, :latestKey) ORDER BY type, latest_key LIMIT :max`

export const MARK_LATEST = `UPDATE job_latest SET idle_since = :idleSince WHERE type = :type AND latest_key = :latestKey`

export const FORGET_LATEST = `DELETE FROM job_latest WHERE type = :type AND latest_key = :latestKey`

export const FIND_LATEST_SEQ = `SELECT seq FROM job_latest WHERE type = :type AND latest_key = :latestKey`

/** Takes the next number of a latest key, or the given one if it is the highest. Returns no row for a stale number. */
export const TAKE_LATEST_SEQ = `
INSERT INTO job_latest (type, latest_key, seq) VALUES (:type, :latestKey, coalesce(:seq, 1))
ON CONFLICT (type, latest_key) DO UPDATE SET seq = coalesce(:seq, job_latest.seq + 1), idle_since = NULL
WHERE :seq IS NULL OR :seq > job_latest.seq
RETURNING seq`

/** At most one job waits and one runs: enqueue and settle see to it. */
export const FIND_LATEST = `
SELECT rowid, id, status, scheduled_at, attempts FROM job_queue
WHERE type = :type AND latest_key = :latestKey AND status IN ('queued', 'in_progress')`

/** Leaves its rowid, and so its place among jobs of the same due time, to the job that replaces it. */
export const SUPERSEDE_WAITING = `
UPDATE job_queue SET rowid = (SELECT max(rowid) + 1 FROM job_queue), status = 'dead_letter', ended = 'superseded', completed_at = :now, ${KEY_RELEASED}, ${UNLEASED}
WHERE id = :id AND status = 'queued'`

/** The newer job of a latest key may run once the older one has ended. */
export const UNBLOCK_LATEST = `
UPDATE job_queue SET waiting_for = 0, updated_at = :now
WHERE type = :type AND latest_key = :latestKey AND status = 'queued' AND waiting_for > 0`

interface Walked {
  readonly type: string
  readonly latest_key: string
  readonly idle_since: string | null
  readonly used: 0 | 1
}

const BATCH = 250

/**
 * Forgets the highest numbers of latest keys that were idle for a week. Until then an older version is refused, even after
 * the newer one was removed. One call looks at one batch of keys and returns whether there are more.
 */
export function latestKeys(core: SqliteCore): { readonly forgetIdle: () => Promise<boolean> } {
  let after = { type: '', latestKey: '' }
  return {
    async forgetIdle() {
      const walked = await core.read('latest keys', () => walk(core, after))
      const last = walked.length < BATCH ? undefined : walked.at(-1)
      after = { type: last?.type ?? '', latestKey: last?.latest_key ?? '' }
      const nowMs = core.clock.nowMs()
      if (walked.some((key) => next(key, nowMs) !== key.idle_since)) {
        await core.writeVolatile('latest keys', () => {
          for (const { type, latest_key: latestKey } of walked) review(core, { type, latestKey }, nowMs)
        })
      }
      return last !== undefined
    },
  }
}

function walk({ connection }: SqliteCore, after: { readonly type: string; readonly latestKey: string }): Walked[] {
  return connection.prepare(WALK_LATEST).all({ ...after, max: BATCH }) as unknown as Walked[]
}

/** The `idle_since` to store: null while the key is used, 'forget' when it was idle long enough. */
function next({ used, idle_since: since }: Walked, nowMs: number): string | null {
  if (used === 1) return null
  if (since === null) return toIso(nowMs)
  return since <= toIso(nowMs - LATEST_IDLE_MS) ? 'forget' : since
}

/** Checks again, because a newer version may have arrived meanwhile. Inside a write transaction. */
function review({ connection }: SqliteCore, key: { readonly type: string; readonly latestKey: string }, nowMs: number) {
  const found = connection.prepare(FIND_LATEST_KEY).get(key) as unknown as Walked | undefined
  if (found === undefined) return
  const idleSince = next(found, nowMs)
  if (idleSince === 'forget') connection.prepare(FORGET_LATEST).run({ ...key })
  else if (idleSince !== found.idle_since) connection.prepare(MARK_LATEST).run({ ...key, idleSince })
}

interface Place {
  readonly rowid: number | null
  readonly seq: number | null
  /** The due time of the job that was replaced. */
  readonly due: string | null
  readonly waitingFor: number
  readonly replaced: boolean
}

export const PLAIN: Place = { rowid: null, seq: null, due: null, waitingFor: 0, replaced: false }

/** Null for a stale version. A waiting older job ends superseded; a running one is waited for. */
export function takeLatestPlace(
  connection: Connection,
  type: string,
  latest: { readonly key: string; readonly seq: number | null },
  by: string,
  nowMs: number,
): Place | null {
  const subject = { type, latestKey: latest.key }
  const taken = connection.prepare(TAKE_LATEST_SEQ).get({ ...subject, seq: latest.seq }) as { seq: number } | undefined
  if (taken === undefined) return null
  const others = connection.prepare(FIND_LATEST).all(subject) as {
    rowid: number
    id: string
    status: string
    scheduled_at: string
    attempts: number
  }[]
  const running = others.some((other) => other.status === 'in_progress')
  const waiting = others.find((other) => other.status === 'queued')
  if (waiting !== undefined) {
    connection.prepare(SUPERSEDE_WAITING).run({ id: waiting.id, now: toIso(nowMs) })
    recordEvent(
      connection,
      { id: waiting.id, name: 'superseded', attempt: waiting.attempts, worker: null, detail: { by } },
      nowMs,
    )
    reviewSuccessors(connection, waiting.id, nowMs)
  }
  return {
    rowid: waiting?.rowid ?? null,
    seq: taken.seq,
    due: waiting?.scheduled_at ?? null,
    waitingFor: running ? 1 : 0,
    replaced: waiting !== undefined,
  }
}

/** Whether no newer version has been stored: an older one must never run after it. */
export function isLatest(connection: Connection, row: ViewRow): boolean {
  if (row.latest_key === null) return true
  const subject = { type: row.type, latestKey: row.latest_key }
  const highest = connection.prepare(FIND_LATEST_SEQ).get(subject) as { seq: number } | undefined
  return highest === undefined || (row.latest_seq ?? 0) >= highest.seq
}
