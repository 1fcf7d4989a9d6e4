/** What the rows tell: jobs that nobody recovers, that nobody runs, or that nobody can run. */
import type { Finding } from '../../../engine/diagnosis.ts'
import { failure, formatAge, ok, plural, warning } from '../../../engine/findings.ts'
import { toIso } from '../../../time/iso.ts'
import type { Queries } from '../database.ts'
import { SILENCE_MS } from '../expired.ts'
import { COUNT_INCONSISTENT, COUNT_OVERDUE, COUNT_SCHEDULES, COUNT_STUCK, COUNT_UNCLAIMABLE } from './statements.ts'

const LOOK_MAX = 10_000
const OVERDUE_MS = 3_600_000
/** A worker that runs claims a due job within milliseconds, unless all its slots are taken. */
const UNWORKED_MS = 5 * 60_000
/** Every keeper would have run a tick by then. */
const SCHEDULE_MS = 60_000

interface Stuck {
  readonly jobs: number
  readonly untyped: number
  readonly oldest_ms: number | null
  readonly now_ms: number
}

export async function lookAtStuck(queries: Queries, recoveryMaxMs: number): Promise<readonly Finding[]> {
  const [stuck] = await queries.rows<Stuck>(COUNT_STUCK, recoveryMaxMs, SILENCE_MS)
  if (stuck === undefined) return []
  const findings: Finding[] = []
  if (stuck.oldest_ms !== null) {
    findings.push(
      failure(
        'stuck jobs',
        `${plural(stuck.jobs, 'job')} with a lease that ran out up to ${formatAge(stuck.now_ms - stuck.oldest_ms)} ago, and nobody recovers them`,
        `Start a worker or 'millrace keep', which recover within ${formatAge(recoveryMaxMs)}, or run 'millrace reap' once.`,
      ),
    )
  }
  if (stuck.untyped > 0) {
    findings.push(
      warning(
        'stuck jobs',
        `${plural(stuck.untyped, 'row')} of yours in 'processing' without a type: the engine leaves them alone`,
        `Watch them with 'millrace reap --tables jobs', or give them a type.`,
      ),
    )
  }
  return findings.length > 0 ? findings : [ok('stuck jobs', 'no lease ran out longer ago than recovery takes')]
}

interface Overdue {
  readonly type: string
  readonly jobs: number
  readonly oldest_ms: number
  readonly sign_ms: number | null
  readonly now_ms: number
}

export async function lookAtOverdue(queries: Queries): Promise<readonly Finding[]> {
  const overdue = await queries.rows<Overdue>(COUNT_OVERDUE, OVERDUE_MS, LOOK_MAX)
  if (overdue.length === 0) return [ok('overdue jobs', `no job is due longer than ${formatAge(OVERDUE_MS)}`)]
  return overdue.map(({ type, jobs, oldest_ms: oldestMs, now_ms: nowMs }) =>
    warning(
      'overdue jobs',
      `${plural(jobs, 'job')} of type '${type}' due longer than ${formatAge(OVERDUE_MS)}, the oldest for ${formatAge(nowMs - oldestMs)}`,
      `Give '${type}' more workers or more concurrency; if jobs of higher priority keep it waiting, raise its priority.`,
    ),
  )
}

/** Workers do not register, so this is read off what they did: the wording must not claim more. */
export async function lookAtWorkers(queries: Queries): Promise<readonly Finding[]> {
  const waiting = await queries.rows<Overdue>(COUNT_OVERDUE, UNWORKED_MS, LOOK_MAX)
  const unworked = waiting.filter(
    ({ sign_ms: signMs, now_ms: nowMs }) => signMs === null || signMs <= nowMs - UNWORKED_MS,
  )
  if (unworked.length === 0) {
    return [ok('workers', `every type with jobs due for ${formatAge(UNWORKED_MS)} was worked on in that time`)]
  }
  return unworked.map(({ type, jobs, sign_ms: signMs }) => {
    const last =
      signMs === null ? 'no start of this type is on record' : `the last sign of a worker is of ${toIso(signMs)}`
    return warning(
      'workers',
      `'${type}' has ${plural(jobs, 'job')} due for over ${formatAge(UNWORKED_MS)} and none is running: ${last}`,
      `Start a worker whose modules export '${type}' (or name it in --types); if one runs, its rate limit holds it back or its slots are taken by other types.`,
    )
  })
}

export async function lookAtUnclaimable(queries: Queries): Promise<readonly Finding[]> {
  const [found] = await queries.rows<{ priorities: number; blocked: number }>(COUNT_UNCLAIMABLE)
  if (found === undefined) return []
  const findings = [
    [found.priorities, 'a priority outside of 1 to 10', 'UPDATE their priority to one of 1 to 10.'],
    [
      found.blocked,
      'blocked by a job that no longer runs',
      `UPDATE them to blocked = false: no job of their key runs.`,
    ],
  ] as const
  const wrong = findings.filter(([jobs]) => jobs > 0)
  if (wrong.length === 0) return [ok('unclaimable jobs', 'none: what is queued can be claimed')]
  return wrong.map(([jobs, why, advice]) =>
    failure('unclaimable jobs', `${plural(jobs, 'queued job')} with ${why}: another program wrote that`, advice),
  )
}

export async function lookDeeper(queries: Queries): Promise<readonly Finding[]> {
  const [found] = await queries.rows<{ waiting: number; words: number; attempts: number }>(COUNT_INCONSISTENT)
  if (found === undefined) return []
  const findings = [
    [found.waiting, 'wait for a number of others that is not on record', 'Cancel them and enqueue them again.'],
    [
      found.words,
      'have a status that Millrace does not know, and are left alone',
      `If they are to run, UPDATE their status to 'queued'.`,
    ],
    [
      found.attempts,
      'count attempts below 0 or beyond their limit',
      'UPDATE their attempt_count, or let them be buried when claimed.',
    ],
  ] as const
  const wrong = findings.filter(([jobs]) => jobs > 0)
  if (wrong.length === 0) return [ok('consistency', 'every job that is not completed was read, and makes sense')]
  return wrong.map(([jobs, what, advice]) => warning('consistency', `${plural(jobs, 'job')} ${what}`, advice))
}

interface ScheduleCounts {
  readonly schedules: number
  readonly active: number
  readonly overdue: number
  readonly oldest: string | null
  readonly oldest_ms: number | null
  readonly now_ms: number
}

export async function lookAtSchedules(queries: Queries): Promise<readonly Finding[]> {
  const [found] = await queries.rows<ScheduleCounts>(COUNT_SCHEDULES, SCHEDULE_MS)
  if (found === undefined) return []
  if (found.overdue === 0 || found.oldest_ms === null) {
    return [
      ok('schedules', `${found.active} of ${plural(found.schedules, 'schedule')} will run again, and none is overdue`),
    ]
  }
  return [
    failure(
      'schedules',
      `${plural(found.overdue, 'schedule')} overdue, '${found.oldest}' for ${formatAge(found.now_ms - found.oldest_ms)}: nobody runs what is due`,
      `Start a worker or 'millrace keep'; if one runs, its log says why it cannot. 'millrace schedules' marks them.`,
    ),
  ]
}
