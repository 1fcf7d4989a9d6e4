/** `millrace doctor` for Redis: what can go wrong with server, memory and jobs, looked at, each with what to do about it. */
import type { DiagnoseOptions, Finding } from '../../engine/diagnosis.ts'
import { failure } from '../../engine/findings.ts'
import { ClosedError } from '../../errors.ts'
import type { RedisDatabase } from './database.ts'
import { lookAtIndex, lookAtQueues } from './diagnosis/queues.ts'
import { lookAtSchedules } from './diagnosis/schedules.ts'
import { lookAtClock, lookAtLatency, lookAtServer } from './diagnosis/server.ts'

export interface Examination extends DiagnoseOptions {
  readonly recoveryMaxMs: number
}

type Look = (database: RedisDatabase) => Promise<readonly Finding[]>

/** Only looks. A look that fails is a finding of its own, so that one fault does not hide the others. */
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
  for (const [subject, look] of looks) findings.push(...(await looked(database, subject, look)))
  return findings
}

async function looked(database: RedisDatabase, subject: string, look: Look): Promise<readonly Finding[]> {
  try {
    return await look(database)
  } catch (error) {
    if (error instanceof ClosedError) throw error
    const reason = error instanceof Error ? error.message : String(error)
    return [failure(subject, `could not be looked at: ${reason}`, 'Mend the other findings first, then look again.')]
  }
}
