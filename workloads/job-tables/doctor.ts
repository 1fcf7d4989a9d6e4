/** What is wrong with the job tables, and what to do. */
import { failure, formatAge, ok, plural, runChecks, warning } from '../../src/doctor/findings.ts'
import { OVERDUE_MS } from '../../src/doctor/jobs.ts'
import type { Finding } from '../../src/engine/engine.ts'
import type { TableAccess } from './access.ts'
import {
  COUNT_MAX,
  type ReaperFacts,
  type RowCounts,
  readReaperFacts,
  readTableFacts,
  type TableFacts,
} from './facts.ts'
import { EVENTS_INDEX } from './migration.ts'

/** A running reaper takes an expired row within two intervals, unless the row is locked. */
const INTERVALS = 2

/** An older stuck row means that no reaper works. */
export function recoveryMsOf({ settings }: TableAccess): number {
  return settings.intervalSec * 1_000 * INTERVALS
}

export function isBehind(facts: readonly TableFacts[], recoveryMs: number): boolean {
  return facts.some(({ rows }) => (rows?.stuckMs ?? 0) > recoveryMs)
}

export async function examineTables(access: TableAccess): Promise<readonly Finding[]> {
  const { tables } = access.place
  const recoveryMs = recoveryMsOf(access)
  const all: TableFacts[] = []
  const checks = tables.map((table) => {
    const run = async (): Promise<readonly Finding[]> => {
      const facts = await readTableFacts(access, table)
      all.push(facts)
      return judgeTable(facts, recoveryMs)
    }
    return [table, run] as const
  })
  const reaper = async (): Promise<readonly Finding[]> =>
    judgeReaper(await readReaperFacts(access, 1), {
      tables,
      isBehind: isBehind(all, recoveryMs),
      nowMs: await access.serverMs(),
    })
  return runChecks([...checks, ['reaper', reaper]])
}

export function judgeTable(facts: TableFacts, recoveryMs: number): readonly Finding[] {
  const { table, isThere, missingColumns, misfit, missingIndexes, rows } = facts
  const migrate = `millrace migrate --tables ${table}`
  const columns = `${table}: columns`
  if (!isThere) {
    const advice = `Check the name and ?schema= in the URL, or create it with '${migrate} --new'.`
    return [failure(columns, 'the table does not exist', advice)]
  }
  if (misfit !== null) return [failure(columns, misfit, 'The reaper and the worker functions cannot use the table.')]
  const missing = missingColumns.join(', ')
  return [
    missing === ''
      ? ok(columns, 'all columns are there')
      : failure(columns, `missing: ${missing}`, `Add them with '${migrate}'; read the SQL first with --dry-run.`),
    missingIndexes.length === 0
      ? ok(`${table}: indexes`, 'the index on leases is there')
      : warning(
          `${table}: indexes`,
          `missing or invalid: ${missingIndexes.join(', ')}; every run of the reaper reads the whole table`,
          `Create it with '${migrate}', or on a busy table first under that name with CREATE INDEX CONCURRENTLY; drop an invalid one before.`,
        ),
    ...(rows === null ? [] : judgeRows(table, rows, recoveryMs)),
  ]
}

function judgeRows(table: string, rows: RowCounts, recoveryMs: number): readonly Finding[] {
  return [
    ...judgeStuck(table, rows, recoveryMs),
    ...judgeLeases(table, rows),
    ...judgeAttempts(table, rows),
    rows.dueMs !== null && rows.dueMs > OVERDUE_MS
      ? warning(
          `${table}: due rows`,
          `${counted(rows.due, 'row')} due, the oldest for ${formatAge(rows.dueMs)}`,
          'No worker claims them: see whether your dispatcher and workers run, and whether there are enough.',
        )
      : ok(`${table}: due rows`, `no row has been due for more than ${formatAge(OVERDUE_MS)}`),
  ]
}

function judgeStuck(table: string, rows: RowCounts, recoveryMs: number): readonly Finding[] {
  const subject = `${table}: stuck rows`
  if (rows.stuckMs === null || rows.stuckMs <= recoveryMs) {
    return [ok(subject, `no lease ended more than ${formatAge(recoveryMs)} ago without being reaped`)]
  }
  const heldBack =
    rows.stuckHeldBack === 0 ? '' : `; next_earliest_run_at holds back ${counted(rows.stuckHeldBack, 'row')}`
  return [
    failure(
      subject,
      `${counted(rows.stuck, 'row')} in 'processing' whose lease has ended, the oldest ${formatAge(rows.stuckMs)} ago${heldBack}`,
      `Start the reaper: 'millrace reap --tables ${table} --every 60s'. If one runs, look at its log and /health: its runs fail, or another transaction has locked the rows.`,
    ),
  ]
}

function judgeLeases(table: string, { leaseless }: RowCounts): readonly Finding[] {
  const subject = `${table}: rows without a lease`
  if (leaseless === 0) return [ok(subject, 'every row in processing has a lease')]
  return [
    warning(
      subject,
      `${counted(leaseless, 'row')} in 'processing' without lease_expires_at: a worker claims without claimJob`,
      'They count as lost DEFAULT_LEASE_SEC after their last heartbeat or change, however healthy. Claim with claimJob, or set lease_expires_at and attempt_count in your own claim.',
    ),
  ]
}

function judgeAttempts(table: string, { exhausted, timedOut, overdrawn }: RowCounts): readonly Finding[] {
  const subject = `${table}: attempts`
  const found: Finding[] = []
  if (exhausted > 0) {
    found.push(
      warning(
        subject,
        `${counted(exhausted, 'failed row')} with all attempts used up, ${counted(timedOut, 'of them', 'of them')} because workers died or hung`,
        `See fail_code, fail_reason and job_events. To run one again: UPDATE ${table} SET status = 'queued', attempt_count = 0, fail_code = NULL, fail_reason = NULL WHERE id = …`,
      ),
    )
  }
  if (overdrawn > 0) {
    found.push(
      warning(
        subject,
        `${counted(overdrawn, 'queued row')} with all attempts used up; each is started once more when it is claimed`,
        'Your own code queued them. Set attempt_count to 0 for all attempts again, or fail them.',
      ),
    )
  }
  return found.length > 0 ? found : [ok(subject, 'no row has used up its attempts')]
}

export function judgeReaper(
  { sessions, hasEvents, recent }: ReaperFacts,
  known: { readonly tables: readonly string[]; readonly isBehind: boolean; readonly nowMs: number },
): readonly Finding[] {
  const tables = known.tables.join(',')
  const migrate = `Create it with 'millrace migrate --tables ${tables}'.`
  if (!hasEvents) return [failure('job_events', 'the table does not exist, so nothing can be reaped', migrate)]
  const index =
    recent === null
      ? [
          warning(
            'job_events',
            `the index ${EVENTS_INDEX} is missing, so the last acts of a reaper are unknown`,
            migrate,
          ),
        ]
      : []
  const [last] = recent ?? []
  const acted =
    last === undefined ? 'none is on record as having acted' : `one acted ${ago(known.nowMs - last.atMs)} ago`
  if (sessions > 0) {
    const connected = `${plural(sessions, 'reaper')} connected; ${acted}`
    return [...index, ok('reaper', connected)]
  }
  const start = `Start one: 'millrace reap --tables ${tables} --every 60s'.`
  const judged = known.isBehind
    ? failure('reaper', `no reaper is connected, and rows wait for one; ${acted}`, start)
    : warning(
        'reaper',
        `no reaper is connected now; ${acted}`,
        `${start} One that runs from cron or inside your program cannot be seen between its runs: then this means nothing.`,
      )
  return [...index, judged]
}

function ago(ms: number): string {
  return formatAge(Math.max(0, ms))
}

function counted(count: number, noun: string, many?: string): string {
  const text = plural(Math.min(count, COUNT_MAX), noun, many)
  return count >= COUNT_MAX ? `at least ${text}` : text
}
