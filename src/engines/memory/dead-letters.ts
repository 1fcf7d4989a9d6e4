import {
  type AuditEntry,
  auditView,
  type By,
  type DeadLetter,
  type DeadLetters,
  type DeskAction,
  matchesAudit,
} from '../../engine/dead-letters.ts'
import type { Clock } from '../../time/clock.ts'
import { isDead, type JobRow, toView } from './rows.ts'
import type { MemoryStore } from './store.ts'

/** The store's own acts, each with an audit entry. Engines over one store share the audit as they share the jobs. */
export function createDeadLetters(open: () => MemoryStore, clock: Clock): DeadLetters {
  const audited = (id: string, act: Act): boolean => recordAct(open(), id, clock.nowMs(), act)
  return {
    list: async (filter) => open().dead(filter).flatMap(toDeadLetter),
    find: async (id) => {
      const row = open().find(id)
      return row !== null && (isDead(row) || row.ended === 'discarded') ? (toDeadLetter(row)[0] ?? null) : null
    },
    requeue: async (id, by, edit) =>
      audited(id, {
        by,
        action: 'replay',
        withPayload: edit !== undefined,
        perform: (store, nowMs) => store.requeue(id, by, nowMs, edit),
      }),
    discard: async (id, by) =>
      audited(id, { by, action: 'discard', perform: (store, nowMs) => store.discard(id, by, nowMs) }),
    undiscard: async (id, by) =>
      audited(id, {
        by,
        action: 'undo',
        perform: (store, nowMs) => store.graveyard.undiscard(id, by, nowMs),
      }),
    remove: async (ids, by) => ids.filter((id) => removeLetter(open(), id, by, clock.nowMs())).length,
    note: async ({ who, reason, action, jobId, type, subject, before, after }) => {
      const about = { jobId: jobId ?? '', type: type ?? '', subject }
      addEntry(open(), { atMs: clock.nowMs(), who, reason, action, ...about, before, after })
    },
    audit: async (filter) =>
      open()
        .graveyard.audit.filter((entry) => matchesAudit(entry, filter))
        .reverse()
        .slice(0, filter.limit),
  }
}

/** Forgets a dead letter or a discarded job; only the audit remembers it. False unless it is one. */
export function removeLetter(store: MemoryStore, id: string, by: By, nowMs: number): boolean {
  return recordAct(store, id, nowMs, { by, action: 'purge', perform: () => store.graveyard.remove(id) })
}

interface Act {
  readonly by: By
  readonly action: DeskAction
  readonly withPayload?: boolean
  perform(store: MemoryStore, nowMs: number): boolean
}

function recordAct(store: MemoryStore, id: string, nowMs: number, act: Act): boolean {
  const { by, action, withPayload } = act
  const row = store.find(id)
  if (row === null) return false
  const before = auditView(toView(row), withPayload)
  if (!act.perform(store, nowMs)) return false
  const left = store.find(id)
  const after = left === null ? null : auditView(toView(left), withPayload)
  const { who, reason } = by
  const about = { jobId: id, type: row.job.type, subject: null }
  addEntry(store, { atMs: nowMs, who, reason, action, ...about, before, after })
  store.signals.ring()
  return true
}

function addEntry({ graveyard }: MemoryStore, entry: Omit<AuditEntry, 'seq'>): void {
  graveyard.audit.push({ seq: graveyard.audit.length + 1, ...entry })
}

function toDeadLetter(row: JobRow): DeadLetter[] {
  return row.error === null ? [] : [{ job: toView(row), error: row.error }]
}
