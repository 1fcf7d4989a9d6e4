/** `millrace doctor` for Redis: what can go wrong with server, memory and jobs, looked at, each with what to do about it. */
import type { DiagnoseOptions, Finding } from '../../engine/diagnosis.ts'
import { looked } from '../../engine/findings.ts'
import type { RedisDatabase } from './database.ts'
import { lookAtIndex, lookAtQueues } from './diagnosis/queues.ts'
import { lookAtSchedules } from './diagnosis/schedules.ts'
import { lookAtClock, lookAtLatency, lookAtServer } from './diagnosis/server.ts'

export interface Examination extends DiagnoseOptions {
  readonly recoveryMaxMs: number
}

type Look = (database: RedisDatabase) => Promise<readonly Finding[]>

/** Only looks. */
export async function diagnose(database: RedisDatabase, examination: Examination): Promise<readonly Finding[]> {
  const looks: readonly (readonly [subject: string, look: Look])[] = [
    ['server', lookAtServer],
    ['clock', lookAtClock],
    ['latency', lookAtLatency],
    ['queues', (look) => lookAtQueues(look, examination.recoveryMaxMs)],
    ['index', (look) => lookAtIndex(look, examination.deep === true)],
    ['schedules', lookAtSchedules],
  ]
  const findings: Finding[] = []
  for (const [subject, look] of looks) findings.push(...(await looked(subject, () => look(database))))
  return findings
}
