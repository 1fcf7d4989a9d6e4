/** What the rows tell: clocks that disagree, jobs that nobody recovers, types that nobody works on. */
import type { Finding } from '../../../engine/diagnosis.ts'
import { failure, formatAge, ok, plural, warning } from '../../../engine/findings.ts'
import { fromIso, toIso } from '../../../time/iso.ts'
import { type ClockRow, READ_CLOCK } from '../clock.ts'
import type { Connection } from '../database.ts'
import { COUNT_EXPIRED, COUNT_LEASELESS, COUNT_OVERDUE, LAST_SIGN, NEWEST_ROWS, UNREADABLE_ROWS } from './statements.ts'

/** How many of the newest rows a look may read. */
const LOOK_MAX = 10_000
/** Two readings of one clock differ by less; processes on one machine share it. */
const CLOCK_TOLERANCE_MS = 5_000
/** How long the doctor goes on to name a step of the clock. */
const STEP_TOLD_MS = 86_400_000
/** Queued rows that are looked at for values of other programs, the newest. */
const ROWS_MAX = 100_000
const OVERDUE_MS = 3_600_000
/** A worker that runs claims a due job within milliseconds, unless all its slots are taken. */
const UNWORKED_MS = 5 * 60_000

export function lookAtClock(connection: Connection, nowMs: number): Finding {
  const rows = connection.handle.prepare(NEWEST_ROWS).all({ max: LOOK_MAX }) as { id: string; created_at: string }[]
  const ahead = rows
    .map(({ id, created_at }) => ({ id, aheadMs: fromIso(created_at) - nowMs }))
    .filter(({ aheadMs }) => aheadMs > CLOCK_TOLERANCE_MS)
    .toSorted((left, right) => right.aheadMs - left.aheadMs)
  const [furthest] = ahead
  if (furthest === undefined) {
    const step = connection.handle.prepare(READ_CLOCK).get() as Partial<ClockRow> | undefined
    const agoMs = nowMs - (step?.stepped_at_ms ?? Number.NEGATIVE_INFINITY)
    if (agoMs < STEP_TOLD_MS) return stepped(step?.step_ms ?? 0, agoMs)
    return ok('clock', `none of the newest ${plural(rows.length, 'job')} was created in the future`)
  }
  return failure(
    'clock',
    `${plural(ahead.length, 'job')} created in the future, ${furthest.id} by ${formatAge(furthest.aheadMs)}: a clock is or was wrong, so leases and delays are too`,
    `Compare this machine's clock (${toIso(nowMs)}) with a time server and keep it synchronised; jobs that are due too late can be cancelled and enqueued again.`,
  )
}

function stepped(stepMs: number, agoMs: number): Finding {
  return warning(
    'clock',
    `the clock of this machine was set ${stepMs < 0 ? 'back' : 'forward'} by ${formatAge(Math.abs(stepMs))}, ${formatAge(Math.max(0, agoMs))} ago, or it was suspended; leases and rate limits were moved with it`,
    `Keep the clock synchronised with a time server that corrects it in small steps.`,
  )
}

export function lookAtLeases(connection: Connection, nowMs: number, recoveryMaxMs: number): readonly Finding[] {
  const before = toIso(nowMs - recoveryMaxMs)
  const expired = connection.handle.prepare(COUNT_EXPIRED).get({ before }) as { jobs: number; oldest: string | null }
  const leaseless = connection.handle.prepare(COUNT_LEASELESS).get() as { jobs: number }
  const findings: Finding[] = []
  if (expired.oldest !== null) {
    findings.push(
      failure(
        'stuck jobs',
        `${plural(expired.jobs, 'job')} with a lease that ran out up to ${formatAge(nowMs - fromIso(expired.oldest))} ago, and nobody recovers them`,
        `Start a worker or 'millrace start', which recover within ${formatAge(recoveryMaxMs)}, or run 'millrace reap' once.`,
      ),
    )
  }
  if (leaseless.jobs > 0) {
    findings.push(
      failure(
        'stuck jobs',
        `${plural(leaseless.jobs, 'job')} in progress without a lease: another program wrote the state, and no recovery finds them`,
        `See them with 'millrace jobs --status in_progress'; set their status back to 'queued', or end them with 'millrace cancel'.`,
      ),
    )
  }
  return findings.length > 0 ? findings : [ok('stuck jobs', 'no lease ran out longer ago than recovery takes')]
}

/** So many are named; the rest is counted. */
const NAMED_MAX = 20

/** Each is named, because nothing else tells of a job that never starts. */
export function lookAtRows(connection: Connection): readonly Finding[] {
  const rows = connection.handle.prepare(UNREADABLE_ROWS).all({ max: ROWS_MAX }) as unknown[] as Unreadable[]
  if (rows.length === 0)
    return [ok('readable rows', 'every queued job looked at has a time and a priority that can be read')]
  const findings = rows
    .slice(0, NAMED_MAX)
    .map(({ id, priority, due }) =>
      failure(
        'readable rows',
        Number.isInteger(priority)
          ? `job ${id} never runs: its scheduled_at is '${due}', which is not an ISO 8601 time`
          : `job ${id} never runs: its priority is ${priority}, which is not a whole number`,
        Number.isInteger(priority)
          ? 'Another program wrote it. Update the row with a time such as 2026-11-16T12:00:00.000Z.'
          : 'Another program wrote it. Update the row with a whole number from 1 to 10.',
      ),
    )
  const left = rows.length - findings.length
  if (left === 0) return findings
  return [
    ...findings,
    failure('readable rows', `${plural(left, 'more job')} that never run`, 'Mend the program that writes them first.'),
  ]
}

interface Unreadable {
  readonly id: string
  readonly priority: number
  readonly due: string
}

interface Overdue {
  readonly type: string
  readonly jobs: number
  readonly oldest: string
}

const readOverdue = (connection: Connection, before: string): readonly Overdue[] =>
  connection.handle.prepare(COUNT_OVERDUE).all({ before }) as unknown[] as Overdue[]

export function lookAtOverdue(connection: Connection, nowMs: number): readonly Finding[] {
  const overdue = readOverdue(connection, toIso(nowMs - OVERDUE_MS))
  if (overdue.length === 0) return [ok('overdue jobs', `no job is due longer than ${formatAge(OVERDUE_MS)}`)]
  return overdue.map(({ type, jobs, oldest }) =>
    warning(
      'overdue jobs',
      `${plural(jobs, 'job')} of type '${type}' due longer than ${formatAge(OVERDUE_MS)}, the oldest for ${formatAge(nowMs - fromIso(oldest))}`,
      `Give '${type}' more workers or more concurrency; if jobs of higher priority keep it waiting, raise its priority.`,
    ),
  )
}

/** Workers do not register, so this is read off what they did: the wording must not claim more. */
export function lookAtWorkers(connection: Connection, nowMs: number): readonly Finding[] {
  const since = toIso(nowMs - UNWORKED_MS)
  const now = toIso(nowMs)
  const sign = connection.handle.prepare(LAST_SIGN)
  const unworked = readOverdue(connection, since).flatMap(({ type, jobs }) => {
    const { at } = sign.get({ type, now, max: LOOK_MAX }) as { at: string | null }
    return at !== null && at > since ? [] : [{ type, jobs, at }]
  })
  if (unworked.length === 0) {
    return [ok('workers', `every type with jobs due for ${formatAge(UNWORKED_MS)} was worked on in that time`)]
  }
  return unworked.map(({ type, jobs, at }) => {
    const last = at === null ? 'no start of this type is on record' : `the last sign of a worker is of ${at}`
    return warning(
      'workers',
      `'${type}' has ${plural(jobs, 'job')} due for over ${formatAge(UNWORKED_MS)} and none is running: ${last}`,
      `Start a worker whose modules export '${type}' (or name it in --types); if one runs, its rate limit holds it back or its slots are taken by other types.`,
    )
  })
}
