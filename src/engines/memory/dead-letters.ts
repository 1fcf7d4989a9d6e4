import {
  type Actor,
  type AuditEntry,
  auditView,
  type DeadLetter,
  type DeadLetters,
  type EditNote,
  ERASED,
  erasedView,
  type LetterAction,
  matchesAudit,
} from '../../engine/dead-letters.ts'
import type { Clock } from '../../time/clock.ts'
import type { Dependencies } from './dependencies.ts'
import type { LatestKeys } from './latest-keys.ts'
import { isDead, isFinished, type JobRow, record, toView } from './rows.ts'
import type { MemoryStore } from './store.ts'
import type { JobTable } from './table.ts'

/** Acts on dead letters, each with an audit entry. Engines over one store share the audit as they share the jobs. */
export function createDeadLetters(open: () => MemoryStore, clock: Clock): DeadLetters {
  const audited = (ids: readonly string[], act: Act): readonly boolean[] => {
    const store = open()
    const done = ids.map((id) => recordAct(store, id, clock.nowMs(), act))
    store.wakeups.wakeClaims()
    return done
  }
  return {
    list: async (filter) => ('ids' in filter ? named(open(), filter.ids) : open().dead(filter)).flatMap(toDeadLetter),
    requeue: async (ids, by, edit) =>
      audited(ids, {
        by,
        action: 'replay',
        ...(edit && { edit: edit.note }),
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
    remove: async (ids, by, { erase = false } = {}) => {
      const store = open()
      const act = erase ? eraseJob : removeLetter
      const done = ids.map((id, index) => ids.indexOf(id) === index && act(store, id, by, clock.nowMs()))
      store.wakeups.wakeClaims()
      return done
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

/** Removes a finished job and what the audit says about it. False if both are unknown, or the job may still be needed. */
function eraseJob(store: MemoryStore, id: string, { who, reason }: Actor, nowMs: number): boolean {
  const { deadLetters } = store
  const row = store.find(id)
  const type = row?.job.type ?? deadLetters.audit.findLast(({ jobId }) => jobId === id)?.type
  if (type === undefined || (row !== null && !deadLetters.remove(id, { over: true }))) return false
  const entries = deadLetters.eraseEntries(id)
  const before = erasedView(row === null ? null : toView(row).state, entries)
  addEntry(store, { atMs: nowMs, who, reason, action: 'erase', jobId: id, type, subject: null, before, after: null })
  return true
}

interface Act {
  readonly by: Actor
  readonly action: LetterAction
  readonly edit?: EditNote
  perform(store: MemoryStore, id: string, nowMs: number): boolean
}

function recordAct(store: MemoryStore, id: string, nowMs: number, act: Act): boolean {
  const { by, action, edit } = act
  const row = store.find(id)
  if (row === null) return false
  const before = auditView(toView(row))
  if (!act.perform(store, id, nowMs)) return false
  const left = store.find(id)
  const after = left === null ? null : auditView(toView(left), edit)
  const { who, reason } = by
  const about = { jobId: id, type: row.job.type, subject: null }
  addEntry(store, { atMs: nowMs, who, reason, action, ...about, before, after })
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

  /** Removes a dead letter or a discarded job; with `over`, any finished job that no other job needs. False for any other job. */
  remove(id: string, { over = false }: { readonly over?: boolean } = {}): boolean {
    const row = this.#table.get(id)
    if (row === null) return false
    const isLetter = isDead(row) || row.ended === 'discarded'
    if (!isLetter && !(over && isFinished(row) && row.neededBy === 0)) return false
    this.forget(row)
    return true
  }

  /** Returns how many entries of the job said something about it. */
  eraseEntries(id: string): number {
    let count = 0
    for (const [index, entry] of this.audit.entries()) {
      if (entry.jobId !== id || entry.action === 'erase' || entry.before === ERASED) continue
      this.audit[index] = { ...entry, before: ERASED, after: entry.after === null ? null : ERASED }
      count += 1
    }
    return count
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
