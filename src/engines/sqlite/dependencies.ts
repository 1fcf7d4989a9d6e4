import type { Lease } from '../../engine/outcome.ts'
import { UnknownJobError } from '../../errors.ts'
import type { Predecessors } from '../../job/job.ts'
import { toIso } from '../../time/iso.ts'
import type { Connection } from './database.ts'
import {
  ANY_LINK,
  FORGET_PREDECESSORS,
  LINK_PREDECESSOR,
  MARK_RELEASED,
  READ_PREDECESSORS,
  RELEASE_SUCCESSORS,
  REVIEW_LINKS,
  REVIEW_SUCCESSORS,
} from './dependency-statements.ts'

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
