/** What the doctor is told about a SQLite file. It only reads. */

import { stat, statfs } from 'node:fs/promises'
import { dirname } from 'node:path'
import { type Check, runChecks } from '../../doctor/findings.ts'
import {
  judgeLeaseless,
  judgeOverdue,
  judgeStuck,
  judgeUnclaimable,
  judgeWorkers,
  OVERDUE_MS,
  UNWORKED_MS,
} from '../../doctor/jobs.ts'
import { judgeSchema } from '../../doctor/schema.ts'
import { judgeClockStep, judgeFuture } from '../../doctor/server.ts'
import {
  type FileSystemFacts,
  judgeDisk,
  judgeFileSystem,
  judgeFreeSpace,
  judgeInMemory,
  judgeIntegrity,
  judgeJournal,
  judgeSqliteVersion,
  judgeSynchronous,
  judgeWal,
  type SyncFacts,
} from '../../doctor/sqlite.ts'
import { judgeOutboxes, judgeSchedules, type WaitingOutbox } from '../../doctor/upkeep.ts'
import type { DiagnoseOptions, Finding } from '../../engine/engine.ts'
import { isMillraceError } from '../../errors.ts'
import { fromIso, toIso } from '../../time/iso.ts'
import { type ClockRow, READ_CLOCK } from './clock.ts'
import type { SqliteCore } from './core.ts'
import { assertVersionText, type Connection, fileOf } from './database.ts'
import { fileSystemOf, isInMemory, isNetwork, isShared, readMounts } from './file-system.ts'
import { LIST_OUTBOXES } from './outbox.ts'
import { listRecords } from './records.ts'
import { readPages } from './retention.ts'
import { schemaFaults } from './schema-facts.ts'

/** What is asked of the machine, so that a test can answer for a machine that it does not have. */
export interface Machine {
  /** The text of /proc/mounts, or null where there is none. */
  mounts(): Promise<string | null>
  freeBytes(folder: string): Promise<number>
  /** 0 when the file does not exist. */
  fileBytes(file: string): Promise<number>
}

export const thisMachine: Machine = {
  mounts: readMounts,
  async freeBytes(folder) {
    const { bavail, bsize } = await statfs(folder)
    return bavail * bsize
  },
  fileBytes: (file) =>
    stat(file).then(
      ({ size }) => size,
      (error: unknown) => {
        if (error instanceof Error && Reflect.get(error, 'code') === 'ENOENT') return 0
        throw error
      },
    ),
}

/** Eight times the size at which a commit folds the WAL back: a little more is a burst, this much is a checkpoint held up. */
const WAL_BYTES_MAX = 64 * 1024 * 1024

export interface Examination extends DiagnoseOptions, Omit<SyncFacts, 'level'> {
  readonly recoveryMaxMs: number
  readonly machine?: Machine
  readonly walBytesMax?: number
}

export async function diagnose(core: SqliteCore, examination: Examination): Promise<readonly Finding[]> {
  const { connection } = core
  const nowMs = core.clock.nowMs()
  const { recoveryMaxMs } = examination
  const checks: readonly Check[] = [
    ['sqlite version', () => judgeSqliteVersion(versionFacts(one(connection, 'SELECT sqlite_version() AS version')))],
    ['journal mode', () => judgeJournal(String(one(connection, 'PRAGMA journal_mode').journal_mode))],
    [
      'synchronous',
      () => judgeSynchronous({ ...examination, level: Number(one(connection, 'PRAGMA synchronous').synchronous) }),
    ],
    ['file system', () => checkFile(fileOf(connection.handle), examination)],
    ['free space', () => judgeFreeSpace(readPages(connection))],
    ['clock', () => checkClock(connection, nowMs)],
    ['stuck jobs', () => checkLeases(connection, nowMs, recoveryMaxMs)],
    ['unclaimable jobs', () => checkRows(connection)],
    ['overdue jobs', () => checkOverdue(connection, nowMs)],
    ['workers', () => checkWorkers(connection, nowMs)],
    ['schedules', () => judgeSchedules(listRecords(core, 'schedule'), nowMs)],
    ['outbox', () => judgeOutboxes(all<WaitingOutbox>(connection, LIST_OUTBOXES, { now: nowMs }))],
    [
      'schema',
      () => {
        const { faults, parts } = schemaFaults(connection, nowMs)
        return judgeSchema(faults, parts)
      },
    ],
    ...(examination.deep === true ? [['integrity', () => checkIntegrity(connection)] as const] : []),
  ]
  return runChecks(
    checks.map(([subject, run]): Check => [subject, async () => core.read(`checking the ${subject}`, run)]),
  )
}

type Values = Readonly<Record<string, string | number>>

function one(connection: Connection, sql: string, values: Values = {}): Readonly<Record<string, unknown>> {
  return (connection.handle.prepare(sql).get(values) ?? {}) as Readonly<Record<string, unknown>>
}

function all<Row>(connection: Connection, sql: string, values: Values = {}): readonly Row[] {
  return connection.handle.prepare(sql).all(values) as unknown[] as Row[]
}

export function versionFacts({ version }: { readonly version?: unknown }): Parameters<typeof judgeSqliteVersion>[0] {
  const text = String(version)
  try {
    assertVersionText(text)
    return { version: text, hasWalFault: false }
  } catch (error) {
    if (!isMillraceError(error)) throw error
    return { version: text, hasWalFault: true }
  }
}

async function checkFile(file: string, { machine = thisMachine, walBytesMax = WAL_BYTES_MAX }: Examination) {
  if (file === '') return judgeInMemory()
  return [
    judgeFileSystem(fileSystemFacts(file, await machine.mounts())),
    judgeWal(await machine.fileBytes(`${file}-wal`), walBytesMax),
    judgeDisk(await machine.freeBytes(dirname(file)), await machine.fileBytes(file)),
  ]
}

export function fileSystemFacts(file: string, mounts: string | null): FileSystemFacts {
  const type = mounts === null ? null : fileSystemOf(file, mounts)
  if (type === null) return { type, kind: 'local' }
  if (isNetwork(type)) return { type, kind: 'network' }
  if (isInMemory(type)) return { type, kind: 'memory' }
  return { type, kind: isShared(type) ? 'shared' : 'local' }
}

/** Reads every page, so only a deep diagnosis does it. */
export function checkIntegrity(connection: Connection): readonly Finding[] {
  const rows = all<{ quick_check: string }>(connection, 'PRAGMA quick_check(10)')
  return judgeIntegrity(rows.map((row) => row.quick_check).filter((text) => text !== 'ok'))
}

/*
 * No statement names an index: each must answer also where one is missing. None walks all finished jobs, so a diagnosis
 * of a large file stays short.
 */

/** How many of the newest rows a check may read. */
const ROWS_MAX = 10_000

const NEWEST_ROWS = `SELECT id, created_at FROM job_queue ORDER BY rowid DESC LIMIT :max`

function checkClock(connection: Connection, nowMs: number): Finding | readonly Finding[] {
  const rows = all<{ id: string; created_at: string }>(connection, NEWEST_ROWS, { max: ROWS_MAX })
  const dated = rows.map(({ id, created_at }) => ({ name: `job ${id}`, aheadMs: fromIso(created_at) - nowMs }))
  const future = judgeFuture(dated, { consequence: 'leases and delays are wrong too', severity: 'error' })
  if (future.severity !== 'ok') return future
  const clock: Partial<ClockRow> = one(connection, READ_CLOCK)
  const { stepped_at_ms: steppedAtMs, step_ms: stepMs } = clock
  if (typeof steppedAtMs !== 'number' || typeof stepMs !== 'number') return future
  const stepped = judgeClockStep({ stepMs, agoMs: nowMs - steppedAtMs })
  return stepped.length > 0 ? stepped : future
}

const COUNT_EXPIRED = `
SELECT count(*) AS jobs, min(lease_until) AS oldest FROM job_queue
WHERE status = 'in_progress' AND lease_until <= :before`

const COUNT_LEASELESS = `
SELECT count(*) AS jobs FROM job_queue WHERE status = 'in_progress' AND lease_until IS NULL`

function checkLeases(connection: Connection, nowMs: number, recoveryMaxMs: number): readonly Finding[] {
  const { jobs, oldest } = one(connection, COUNT_EXPIRED, { before: toIso(nowMs - recoveryMaxMs) })
  const leaseless = judgeLeaseless(Number(one(connection, COUNT_LEASELESS).jobs))
  if (typeof oldest !== 'string') return leaseless.length > 0 ? leaseless : judgeStuck([], recoveryMaxMs)
  const expired = { jobs: Number(jobs), type: null, oldestMs: nowMs - fromIso(oldest), since: 'expired' } as const
  return [...judgeStuck([expired], recoveryMaxMs), ...leaseless]
}

/** Queued rows, the newest, that are checked for values of other programs. */
const FOREIGN_ROWS_MAX = 100_000

/** Rows that no claim finds: it compares times as text and looks for whole priorities. */
const UNCLAIMABLE_ROWS = `
SELECT id, priority, scheduled_at AS due FROM (SELECT id, priority, scheduled_at FROM job_queue WHERE status = 'queued' ORDER BY rowid DESC LIMIT :max)
WHERE typeof(priority) <> 'integer' OR typeof(scheduled_at) <> 'text' OR julianday(scheduled_at) IS NULL
  OR scheduled_at NOT GLOB '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]*'`

function checkRows(connection: Connection): readonly Finding[] {
  const rows = all<{ id: string; priority: number; due: string }>(connection, UNCLAIMABLE_ROWS, {
    max: FOREIGN_ROWS_MAX,
  })
  return judgeUnclaimable(
    rows.map(({ id, priority, due }) =>
      Number.isInteger(priority)
        ? {
            jobs: id,
            why: `its scheduled_at is '${due}', which is not an ISO 8601 time`,
            advice: 'Update the row with a time such as 2026-11-16T12:00:00.000Z.',
          }
        : {
            jobs: id,
            why: `its priority is ${priority}, which is not a whole number`,
            advice: 'Update the row with a whole number from 1 to 10.',
          },
    ),
  )
}

const COUNT_OVERDUE = `
SELECT type, count(*) AS jobs, min(scheduled_at) AS oldest FROM job_queue
WHERE status = 'queued' AND waiting_for = 0 AND scheduled_at <= :before GROUP BY type ORDER BY type`

interface Overdue {
  readonly type: string
  readonly jobs: number
  readonly oldest: string
}

function checkOverdue(connection: Connection, nowMs: number): readonly Finding[] {
  const overdue = all<Overdue>(connection, COUNT_OVERDUE, { before: toIso(nowMs - OVERDUE_MS) })
  return judgeOverdue(
    overdue.map(({ type, jobs, oldest }) => ({
      ...{ type, jobs, counted: 'overdue', running: null },
      oldestMs: nowMs - fromIso(oldest),
    })),
  )
}

/**
 * When a worker last showed itself for a type: now for a live lease, else the last start among the newest finished jobs
 * or the last failure or release among the newest events. The row of a retried job no longer has its start.
 */
const LAST_SIGN = `
SELECT max(at) AS at FROM (
  SELECT CASE WHEN lease_until > :now THEN :now ELSE started_at END AS at FROM job_queue
  WHERE type = :type AND status = 'in_progress'
  UNION ALL
  SELECT at FROM (SELECT started_at AS at FROM job_queue WHERE type = :type AND status = 'completed'
    ORDER BY rowid DESC LIMIT :max)
  UNION ALL
  SELECT at FROM (SELECT started_at AS at FROM job_queue WHERE type = :type AND status = 'dead_letter'
    ORDER BY rowid DESC LIMIT :max)
  UNION ALL
  SELECT event.at FROM (SELECT job_id, at FROM job_events WHERE name IN ('failed', 'released')
    ORDER BY seq DESC LIMIT :max) AS event
  JOIN job_queue ON job_queue.id = event.job_id WHERE job_queue.type = :type)`

function checkWorkers(connection: Connection, nowMs: number): readonly Finding[] {
  const since = toIso(nowMs - UNWORKED_MS)
  const waiting = all<Overdue>(connection, COUNT_OVERDUE, { before: since })
  const signs = waiting.map(({ type, jobs }) => {
    const { at } = one(connection, LAST_SIGN, { type, now: toIso(nowMs), max: ROWS_MAX })
    return { type, jobs, lastSignMs: typeof at === 'string' ? fromIso(at) : null }
  })
  return judgeWorkers(signs.filter(({ lastSignMs }) => lastSignMs === null || lastSignMs <= nowMs - UNWORKED_MS))
}
