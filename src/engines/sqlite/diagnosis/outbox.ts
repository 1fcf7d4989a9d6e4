import type { Finding } from '../../../engine/diagnosis.ts'
import { judgeOutboxes, type WaitingOutbox } from '../../../engine/outbox-findings.ts'
import type { Connection } from '../database.ts'
import { LIST_OUTBOXES } from '../outbox.ts'

export function lookAtOutboxes(connection: Connection, nowMs: number): readonly Finding[] {
  return judgeOutboxes(connection.handle.prepare(LIST_OUTBOXES).all({ now: nowMs }) as unknown[] as WaitingOutbox[])
}
