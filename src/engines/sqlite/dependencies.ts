import type { Lease } from '../../engine/outcome.ts'
import { UnknownJobError } from '../../errors.ts'
import type { Predecessors } from '../../job/job.ts'
import { toIso } from '../../time/iso.ts'
import type { Connection } from './database.ts'

/**
 * The statements of jobs that come after others. `job_after` has a row for each pair until the later job is over for
 * good; `held` is 1 while the earlier one holds it back. `waiting_for` of a job that comes after others is always the
 * number of its rows that are held.
 */

/** Whether a job of this state holds back one that comes after it. A dead letter may be replayed, so `wait` goes on. */
const HOLDS = `CASE job_queue.status WHEN 'completed' THEN 0
  WHEN 'dead_letter' THEN job_queue.ended IS NULL AND :ifDead = 'wait' ELSE 1 END`

/** Which of the ids exist, and whether they hold back whoever comes after them. */
export const READ_PREDECESSORS = `
SELECT job_queue.id, ${HOLDS} AS held FROM json_each(:ids) AS ids JOIN job_queue ON job_queue.id = ids.value`

export const LINK_PREDECESSOR = `
INSERT INTO job_after (after_id, job_id, if_dead, held) VALUES (:after, :id, :ifDead, :held)`

/** Most stores have none: then no settle looks any further. */
export const ANY_LINK = `SELECT 1 AS found FROM job_after LIMIT 1`

/** Completions, many in one statement. What is not released yet by these ids is counted off. */
export const RELEASE_SUCCESSORS = `
UPDATE job_queue SET waiting_for = waiting_for - freed.links, updated_at = :now
FROM (SELECT job_id, count(*) AS links FROM job_after
  WHERE after_id IN (SELECT value FROM json_each(:ids)) AND held = 1 GROUP BY job_id) AS freed
WHERE job_queue.id = freed.job_id`

export const MARK_RELEASED = `
UPDATE job_after SET held = 0 WHERE after_id IN (SELECT value FROM json_each(:ids)) AND held = 1`

/** A job that is over for good needs nobody's result any more. */
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

/** A condition on `job_queue`: a job that may still run, or be replayed, comes after this one and will ask for its result. */
export const IS_AWAITED = `EXISTS (SELECT 1 FROM job_after WHERE job_after.after_id = job_queue.id)`

/** Notes whom a new job comes after and returns how many of them hold it back. Inside a write transaction. */
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

/** These jobs are completed: whoever came after them goes on. Nearly free where nobody does. */
export function releaseSuccessors(connection: Connection, completed: readonly Lease[], nowMs: number): void {
  if (connection.prepare(ANY_LINK).get() === undefined) return
  const given = { ids: JSON.stringify(completed.map(({ job }) => job.id)) }
  const { changes } = connection.prepare(RELEASE_SUCCESSORS).run({ ...given, now: toIso(nowMs) })
  if (Number(changes) > 0) connection.prepare(MARK_RELEASED).run(given)
  const later = completed.filter(({ job }) => job.after !== null).map(({ job }) => job.id)
  if (later.length > 0) connection.prepare(FORGET_PREDECESSORS).run({ ids: JSON.stringify(later) })
}

/** A job's state is another, or the job is gone: whoever comes after it goes on, or waits for it again. */
export function reviewSuccessors(connection: Connection, id: string, nowMs: number): void {
  if (Number(connection.prepare(REVIEW_LINKS).run({ id }).changes) === 0) return
  connection.prepare(REVIEW_SUCCESSORS).run({ id, now: toIso(nowMs) })
}

/** The job is over for good, or gone: those that it came after are no longer needed by it. */
export function forgetPredecessors(connection: Connection, id: string): void {
  connection.prepare(FORGET_PREDECESSORS).run({ ids: JSON.stringify([id]) })
}
