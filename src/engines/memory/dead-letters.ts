import {
  type Actor,
  type AuditEntry,
  auditView,
  type DeadLetter,
  type DeadLetters,
  type DeskAction,
  matchesAudit,
} from '../../engine/dead-letters.ts'
import type { Clock } from '../../time/clock.ts'
import type { Dependencies } from './dependencies.ts'
import type { LatestKeys } from './latest-keys.ts'
import { isDead, type JobRow, record, toView } from './rows.ts'
import type { MemoryStore } from './store.ts'
import type { JobTable } from './table.ts'

/** Acts on dead letters, each with an audit entry. Engines over one store share the audit as they share the jobs. */
export function createDeadLetters(open: () => MemoryStore, clock: Clock): DeadLetters {
  const audited = (ids: readonly string[], act: Act): readonly boolean[] => {
    const store = open()
    return ids.map((id) => recordAct(store, id, clock.nowMs(), act))
  }
  return {
    list: async (filter) => ('ids' in filter ? named(open(), filter.ids) : open().dead(filter)).flatMap(toDeadLetter),
    requeue: async (ids, by, edit) =>
      audited(ids, {
        by,
        action: 'replay',
        withPayload: edit !== undefined,
        perform: (store, id, nowMs) => store.requeue(id, by, nowMs, edit),
      }),
    discard: async (ids, by) =>
      audited(ids, { by, action: 'discard', perform: (store, id, nowMs) => store.discard(id, by, nowMs) }),
    undiscard: async (ids, by) =>
      audited(ids, {
        by,
        action: 'undo',
        perform: (store, id, nowMs) => store.deadLetters.undiscard(id, by, nowMs),
      }),
    remove: async (ids, by) => {
      const store = open()
      return ids.map((id) => removeLetter(store, id, by, clock.nowMs()))
    },
    note: async ({ who, reason, action, jobId, type, subject, before, after }) => {
      const about = { jobId: jobId ?? '', type: type ?? '', subject }
      addEntry(open(), { atMs: clock.nowMs(), who, reason, action, ...about, before, after })
    },
    audit: async (filter) =>
      open()
        .deadLetters.audit.filter((entry) => matchesAudit(entry, filter))
        .reverse()
        .slice(0, filter.limit),
  }
}

/** Removes a dead letter or a discarded job; only the audit remembers it. False for any other job. */
export function removeLetter(store: MemoryStore, id: string, by: Actor, nowMs: number): boolean {
  return recordAct(store, id, nowMs, { by, action: 'purge', perform: () => store.deadLetters.remove(id) })
}

interface Act {
  readonly by: Actor
  readonly action: DeskAction
  readonly withPayload?: boolean
  perform(store: MemoryStore, id: string, nowMs: number): boolean
}

function recordAct(store: MemoryStore, id: string, nowMs: number, act: Act): boolean {
  const { by, action, withPayload } = act
  const row = store.find(id)
  if (row === null) return false
  const before = auditView(toView(row), withPayload)
  if (!act.perform(store, id, nowMs)) return false
  const left = store.find(id)
  const after = left === null ? null : auditView(toView(left), withPayload)
  const { who, reason } = by
  const about = { jobId: id, type: row.job.type, subject: null }
  addEntry(store, { atMs: nowMs, who, reason, action, ...about, before, after })
  store.wakeups.wakeClaims()
  return true
}

function addEntry({ deadLetters }: MemoryStore, entry: Omit<AuditEntry, 'seq'>): void {
  deadLetters.audit.push({ seq: deadLetters.audit.length + 1, ...entry })
}

function named(store: MemoryStore, ids: readonly string[]): readonly JobRow[] {
  const rows = ids.map((id) => store.find(id)).filter((row) => row !== null)
  return rows.filter((row) => isDead(row) || row.ended === 'discarded')
}

function toDeadLetter(row: JobRow): DeadLetter[] {
  return row.error === null ? [] : [{ job: toView(row), error: row.error }]
}

/** Finished jobs that an operator or retention acts on, and the audit of those acts. */
export class DeadLetterStore {
  /** Oldest first. */
  readonly audit: AuditEntry[] = []
  readonly #table: JobTable
  readonly #latest: LatestKeys
  readonly #dependencies: Dependencies

  constructor(table: JobTable, latest: LatestKeys, dependencies: Dependencies) {
    this.#table = table
    this.#latest = latest
    this.#dependencies = dependencies
  }

  /** Makes a discarded job a dead letter again, with its time of death. False if it is not discarded or was removed. */
  undiscard(id: string, by: Actor, nowMs: number): boolean {
    const row = this.#table.get(id)
    if (row?.ended !== 'discarded') return false
    Object.assign(row, { ended: null, completedAtMs: this.#diedAtMs(id) ?? row.completedAtMs })
    this.#table.restore(row)
    this.#dependencies.changed(row)
    record(row, 'dead', nowMs, { detail: { ...by, undone: 'discarded' } })
    return true
  }

  /** Removes a dead letter or a discarded job. False for any other job. */
  remove(id: string): boolean {
    const row = this.#table.get(id)
    if (row === null || !(isDead(row) || row.ended === 'discarded')) return false
    this.forget(row)
    return true
  }

  /** Jobs in order of arrival, in any state. */
  after(serial: number, max: number): readonly JobRow[] {
    return this.#table.after(serial, max)
  }

  finished(what: 'completed' | 'dead', type: string): readonly JobRow[] {
    return this.#table.finishedOf(what, type)
  }

  /** Removes a finished job without an audit entry. */
  forget(row: JobRow): void {
    this.#table.remove(row)
    this.#latest.remove(row)
    this.#dependencies.removed(row)
  }

  #diedAtMs(id: string): number | null {
    const discarded = this.audit.findLast((entry) => entry.jobId === id && entry.action === 'discard')
    const atMs = discarded?.before.completedAtMs
    return typeof atMs === 'number' ? atMs : null
  }
}
