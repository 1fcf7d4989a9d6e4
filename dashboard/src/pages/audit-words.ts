/** The words of the audit. */
import type { AuditAction } from '../../../src/engine/dead-letters.ts'
import type { AuditEntry } from '../api/shapes.ts'

const WORDS: Readonly<Record<AuditAction, string>> = {
  replay: 'replayed',
  discard: 'discarded',
  undo: 'undid the discard of',
  purge: 'purged',
  erase: 'erased',
  enqueue: 'enqueued',
  cancel: 'cancelled',
  retry: 'retried',
  pause: 'paused',
  resume: 'resumed',
  'limits-change': 'changed the limits of',
  'limits-reset': 'reset the limits of',
  'type-drain': 'drained type',
  'type-obliterate': 'obliterated type',
  'schedule-change': 'changed schedule',
  'schedule-pause': 'paused schedule',
  'schedule-resume': 'resumed schedule',
  'schedule-run': 'ran schedule',
  'schedule-remove': 'removed schedule',
  'worker-drain': 'drained worker',
  'webhook-enable': 'enabled webhook',
  'webhook-disable': 'disabled webhook',
  'webhook-test': 'tested webhook',
  'webhook-redeliver': 'redelivered webhook',
  'row-requeue': 'requeued row',
  'row-fail': 'failed row',
  forget: 'forgot',
  link: 'made a read-only link',
}

export const AUDIT_ACTIONS = Object.keys(WORDS)

/** What was done. A server may be newer than the page, and know more. */
export function auditWord(action: string): string {
  return new Map(Object.entries(WORDS)).get(action) ?? action
}

/** Without a reason the name of the action is stored. */
export function isReason({ reason, action }: Pick<AuditEntry, 'reason' | 'action'>): boolean {
  return reason !== '' && reason !== action && reason !== `${action}d`
}
