import type { Finding } from '../../../engine/diagnosis.ts'
import { judgeOutboxes, type WaitingOutbox } from '../../../engine/outbox-findings.ts'
import type { Database } from '../database.ts'
import { LIST_OUTBOXES } from '../outbox.ts'

export async function lookAtOutboxes(database: Database): Promise<readonly Finding[]> {
  return judgeOutboxes(await database.rows<WaitingOutbox>(LIST_OUTBOXES))
}
