import { SUCCESSORS_SEARCHED } from '../../engine/engine.ts'
import type { Lease } from '../../engine/outcome.ts'
import { UnknownJobError } from '../../errors.ts'
import type { Predecessors } from '../../job/job.ts'
import { toIso } from '../../time/iso.ts'
import type { Connection } from './database.ts'

/**
 * `job_after` has a row for each pair of jobs until the later one is over for good. `held` is 1 while the earlier job holds
 * the later one back. `waiting_for` of a job is always the number of its held rows.
 */

/** Whether a job in this state holds its successors back. A dead letter may be replayed, so `wait` continues. */
const HOLDS = `CASE job_queue.status WHEN 'completed' THEN 0
  WHEN 'dead_letter' THEN job_queue.ended IS NULL AND :ifDead = 'wait' ELSE 1 END`

/** Which of the ids exist, and whether they hold their successors back. */
export const READ_PREDECESSORS = `
SELECT job_queue.id, ${HOLDS} AS held FROM json_each(:ids) AS ids JOIN job_queue ON job_queue.id = ids.value`

export const LINK_PREDECESSOR = `
INSERT INTO job_after (after_id, job_id, if_dead, held) VALUES (:after, :id, :ifDead, :held)`

/** Most databases have no links, and then a settle stops here. */
export const ANY_LINK = `SELECT 1 AS found FROM job_after LIMIT 1`

/** Releases the successors of many completed jobs in one statement. */
export const RELEASE_SUCCESSORS = `
UPDATE job_queue SET waiting_for = waiting_for - freed.links, updated_at = :now
FROM (SELECT job_id, count(*) AS links FROM job_after
  WHERE after_id IN (SELECT value FROM json_each(:ids)) AND held = 1 GROUP BY job_id) AS freed
WHERE job_queue.id = freed.job_id`

export const MARK_RELEASED = `
UPDATE job_after SET held = 0 WHERE after_id IN (SELECT value FROM json_each(:ids)) AND held = 1`

/** A job that is over for good no longer needs the results of its predecessors. */
export const FORGET_PREDECESSORS = `DELETE FROM job_after WHERE job_id IN (SELECT value FROM json_each(:ids))`

/** After any other change of one job's state, and after its removal. */
export const REVIEW_LINKS = `
UPDATE job_after SET held = coalesce((SELECT ${HOLDS.replace(':ifDead', 'job_after.if_dead')}
  FROM job_queue WHERE job_queue.id = job_after.after_id), 0)
WHERE after_id = :id`

export const REVIEW_SUCCESSORS = `
UPDATE job_queue SET updated_at = :now,
  waiting_for = (SELECT count(*) FROM job_after WHERE job_after.job_id = job_queue.id AND held = 1)
WHERE id IN (SELECT job_id FROM job_after WHERE after_id = :id)`

/** A condition on `job_queue`: a job that may still run, or be replayed, comes after this one and will need its result. */
export const IS_AWAITED = `EXISTS (SELECT 1 FROM job_after WHERE job_after.after_id = job_queue.id)`

/** Those that may still run have links; those that are over are looked for among the next jobs. */
export const SUCCESSORS = `
SELECT job_id AS id FROM job_after WHERE after_id IN (SELECT value FROM json_each(:ids))
UNION SELECT id FROM (SELECT id, predecessors FROM job_queue WHERE id > :first ORDER BY id LIMIT ${SUCCESSORS_SEARCHED})
WHERE predecessors IS NOT NULL AND EXISTS (
  SELECT 1 FROM json_each(predecessors, '$.ids') AS before WHERE before.value IN (SELECT value FROM json_each(:ids)))`

export function successorsOf(connection: Connection, ids: readonly string[]): readonly string[] {
  const given = { ids: JSON.stringify(ids), first: [...ids].sort()[0] ?? '' }
  return (connection.prepare(SUCCESSORS).all(given) as { id: string }[]).map(({ id }) => id)
}

/** Links a new job to its predecessors and returns how many of them hold it back. Inside a write transaction. */
export function linkPredecessors(connection: Connection, id: string, { ids, ifDead }: Predecessors): number {
  const found = connection.prepare(READ_PREDECESSORS).all({ ids: JSON.stringify(ids), ifDead }) as {
    id: string
    held: 0 | 1
  }[]
  const held = new Map(found.map((one) => [one.id, one.held]))
  const unknown = ids.find((after) => !held.has(after))
  if (unknown !== undefined) throw new UnknownJobError(unknown)
  const link = connection.prepare(LINK_PREDECESSOR)
  for (const [after, isHeld] of held) link.run({ after, id, ifDead, held: isHeld })
  return [...held.values()].filter((isHeld) => isHeld === 1).length
}

/** Releases the successors of completed jobs. Nearly free when there are none. */
export function releaseSuccessors(connection: Connection, completed: readonly Lease[], nowMs: number): void {
  if (connection.prepare(ANY_LINK).get() === undefined) return
  const given = { ids: JSON.stringify(completed.map(({ job }) => job.id)) }
  const { changes } = connection.prepare(RELEASE_SUCCESSORS).run({ ...given, now: toIso(nowMs) })
  if (Number(changes) > 0) connection.prepare(MARK_RELEASED).run(given)
  const later = completed.filter(({ job }) => job.after !== null).map(({ job }) => job.id)
  if (later.length > 0) connection.prepare(FORGET_PREDECESSORS).run({ ids: JSON.stringify(later) })
}

/** Call after a job changed its state or was removed: its successors go on, or wait for it again. */
export function reviewSuccessors(connection: Connection, id: string, nowMs: number): void {
  if (Number(connection.prepare(REVIEW_LINKS).run({ id }).changes) === 0) return
  connection.prepare(REVIEW_SUCCESSORS).run({ id, now: toIso(nowMs) })
}

/** Call when a job is over for good or removed: it no longer needs its predecessors. */
export function forgetPredecessors(connection: Connection, id: string): void {
  connection.prepare(FORGET_PREDECESSORS).run({ ids: JSON.stringify([id]) })
}
