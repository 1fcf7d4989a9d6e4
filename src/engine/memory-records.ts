import type { NewJob } from '../job/job.ts'
import { type Clock, systemClock } from '../time/clock.ts'
import type { Receipt } from './engine.ts'
import { RecordPresence } from './presence.ts'
import { EXPIRED_KEPT_MS, type NewRecord, PUT_REVISION, type RecordKind, type Records } from './records.ts'

interface Row extends NewRecord {
  readonly savedAtMs: number
  readonly expiresAtMs: number | null
}

/** The records of one store. Several engines, each with its clock, may share it. */
export class RecordTable {
  readonly #kinds = new Map<RecordKind, Map<string, Row>>()
  readonly #listeners = new Set<() => void>()

  rows(kind: RecordKind): Map<string, Row> {
    const rows = this.#kinds.get(kind) ?? new Map<string, Row>()
    this.#kinds.set(kind, rows)
    return rows
  }

  /** Moves every expiry by as much as the clock was set. */
  shift(ms: number): void {
    for (const rows of this.#kinds.values()) {
      for (const [name, row] of rows) {
        if (row.expiresAtMs === null) continue
        rows.set(name, { ...row, savedAtMs: row.savedAtMs + ms, expiresAtMs: row.expiresAtMs + ms })
      }
    }
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  changed(): void {
    for (const listener of [...this.#listeners]) listener()
  }
}

interface MemoryRecordsParts {
  readonly clock: Clock
  /** Throws when the store is closed. */
  table(): RecordTable
  enqueue(jobs: readonly NewJob[], nowMs: number): readonly Receipt[]
}

/** Records in this process alone. */
export function createMemoryRecords({ clock, table, enqueue }: MemoryRecordsParts): Records {
  return {
    async list(kind) {
      const rows = [...table().rows(kind).values()]
      const nowMs = clock.nowMs()
      return rows
        .sort((one, other) => (one.name < other.name ? -1 : 1))
        .map(({ expiresAtMs, ...row }) => ({ ...row, leftMs: expiresAtMs === null ? null : expiresAtMs - nowMs }))
    },
    async save(kind, { name, revision, body }, expected, { ttlMs, jobs = [] } = {}) {
      const rows = table().rows(kind)
      if ((rows.get(name)?.revision ?? null) !== expected) return null
      const savedAtMs = clock.nowMs()
      // The jobs are read whole and stored before the record: an error leaves both as they were.
      const copies = jobs.map((job) => ({ ...job }))
      const receipts = copies.length === 0 ? [] : enqueue(copies, savedAtMs)
      rows.set(name, { name, revision, body, savedAtMs, expiresAtMs: ttlMs === undefined ? null : savedAtMs + ttlMs })
      table().changed()
      return receipts
    },
    async put(kind, records, ttlMs) {
      const rows = table().rows(kind)
      const savedAtMs = clock.nowMs()
      for (const { name, body } of records) {
        rows.set(name, { name, revision: PUT_REVISION, body, savedAtMs, expiresAtMs: savedAtMs + ttlMs })
      }
      for (const [name, { expiresAtMs }] of rows) {
        if (expiresAtMs !== null && expiresAtMs < savedAtMs - EXPIRED_KEPT_MS) rows.delete(name)
      }
    },
    async remove(kind, names) {
      const rows = table().rows(kind)
      const removed = names.filter((name) => rows.delete(name)).length
      if (removed > 0) table().changed()
      return removed
    },
    onChange: (listener) => table().onChange(listener),
  }
}

/**
 * Presence in this process alone: for one process that has all workers, and for tests.
 *
 * @example
 * const presence = new MemoryPresence()
 * attachPresence(mill, { presence })
 */
export class MemoryPresence extends RecordPresence {
  constructor(clock: Clock = systemClock) {
    const table = new RecordTable()
    super(createMemoryRecords({ clock, table: () => table, enqueue: () => [] }))
  }
}
