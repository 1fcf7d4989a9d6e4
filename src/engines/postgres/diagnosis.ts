/** `millrace doctor` for Postgres: what can go wrong with server, tables and jobs, looked at, each with what to do about it. */
import type { DiagnoseOptions, Finding } from '../../engine/diagnosis.ts'
import { looked } from '../../engine/findings.ts'
import type { PostgresCore } from './core.ts'
import type { Database } from './database.ts'
import {
  lookAtOverdue,
  lookAtSchedules,
  lookAtStuck,
  lookAtUnclaimable,
  lookAtWorkers,
  lookDeeper,
} from './diagnosis/jobs.ts'
import { lookAtOutboxes } from './diagnosis/outbox.ts'
import { lookAtRole } from './diagnosis/role.ts'
import { lookAtHorizon, lookAtRows } from './diagnosis/rows.ts'
import { lookAtSchema } from './diagnosis/schema.ts'
import { lookAtConnections, lookAtServer } from './diagnosis/server.ts'
import { lookAtWakeups } from './diagnosis/wakeups.ts'
import type { PostgresOptions } from './options.ts'

export interface Examination extends DiagnoseOptions {
  readonly recoveryMaxMs: number
  readonly options: Required<PostgresOptions>
}

type Look = (database: Database) => Promise<readonly Finding[]>

/** Only looks. */
export async function diagnose(core: PostgresCore, examination: Examination): Promise<readonly Finding[]> {
  const { recoveryMaxMs, options } = examination
  const looks: readonly (readonly [subject: string, look: Look])[] = [
    ['server', lookAtServer],
    ['connections', (database) => lookAtConnections(database, options.pool + (options.listen ? 1 : 0))],
    ['wake-ups', () => lookAtWakeups(core, options)],
    ['role', lookAtRole],
    ['schema', lookAtSchema],
    ['horizon', lookAtHorizon],
    ['vacuum', lookAtRows],
    ['stuck jobs', (database) => lookAtStuck(database, recoveryMaxMs)],
    ['unclaimable jobs', lookAtUnclaimable],
    ['overdue jobs', lookAtOverdue],
    ['workers', lookAtWorkers],
    ['schedules', lookAtSchedules],
    ['outbox', lookAtOutboxes],
    ...(examination.deep === true ? [['consistency', lookDeeper] as const] : []),
  ]
  const findings: Finding[] = []
  for (const [subject, look] of looks)
    findings.push(...(await looked(subject, () => core.call(`looking at the ${subject}`, look))))
  return findings
}
