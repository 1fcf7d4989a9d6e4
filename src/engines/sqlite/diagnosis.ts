/** `millrace doctor` for SQLite: what can go wrong with the file, looked at, each with what to do about it. */
import type { DiagnoseOptions, Finding } from '../../engine/diagnosis.ts'
import { looked } from '../../engine/findings.ts'
import type { SqliteCore } from './core.ts'
import { fileOf } from './database.ts'
import { lookAtFile, type Machine, thisMachine, WAL_BYTES_MAX } from './diagnosis/file.ts'
import { lookAtClock, lookAtLeases, lookAtOverdue, lookAtRows, lookAtWorkers } from './diagnosis/jobs.ts'
import { lookAtOutboxes } from './diagnosis/outbox.ts'
import { lookAtSchedules } from './diagnosis/schedules.ts'
import { lookAtSchema } from './diagnosis/schema.ts'
import {
  type Durability,
  lookAtIntegrity,
  lookAtJournal,
  lookAtSynchronous,
  lookAtVersion,
  versionOf,
} from './diagnosis/settings.ts'
import { lookAtSpace } from './diagnosis/space.ts'

export interface Examination extends DiagnoseOptions, Durability {
  readonly recoveryMaxMs: number
  readonly machine?: Machine
  readonly walBytesMax?: number
}

type Looked = Finding | readonly Finding[] | Promise<readonly Finding[]>

/** Only looks. */
export async function diagnose(core: SqliteCore, examination: Examination): Promise<readonly Finding[]> {
  const { connection } = core
  const nowMs = core.clock.nowMs()
  const { machine = thisMachine, walBytesMax = WAL_BYTES_MAX, recoveryMaxMs } = examination
  const looks: readonly (readonly [subject: string, look: () => Looked])[] = [
    ['sqlite version', () => lookAtVersion(versionOf(connection))],
    ['journal mode', () => lookAtJournal(connection)],
    ['synchronous', () => lookAtSynchronous(connection, examination)],
    ['file system', () => lookAtFile(fileOf(connection.handle), machine, walBytesMax)],
    ['free space', () => lookAtSpace(connection)],
    ['clock', () => lookAtClock(connection, nowMs)],
    ['stuck jobs', () => lookAtLeases(connection, nowMs, recoveryMaxMs)],
    ['readable rows', () => lookAtRows(connection)],
    ['overdue jobs', () => lookAtOverdue(connection, nowMs)],
    ['workers', () => lookAtWorkers(connection, nowMs)],
    ['schedules', () => lookAtSchedules(connection, nowMs)],
    ['outbox', () => lookAtOutboxes(connection, nowMs)],
    ['schema', () => lookAtSchema(connection, nowMs)],
    ...(examination.deep === true ? [['integrity', () => lookAtIntegrity(connection)] as const] : []),
  ]
  const findings: Finding[] = []
  for (const [subject, look] of looks)
    findings.push(...(await looked(subject, async () => core.read(`looking at the ${subject}`, look))))
  return findings
}
