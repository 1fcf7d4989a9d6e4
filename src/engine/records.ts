/**
 * Small records with a revision and an expiry: schedules, leadership, presence, pauses and history are kept in them. What a record
 * means is decided above the port; an engine stores the body and never looks inside.
 */
import type { NewJob } from '../job/job.ts'
import type { Receipt } from './engine.ts'

/** Those of the history: what workers say, and what the keeper makes of it. */
export type HistoryKind = 'tally' | 'second' | 'minute' | 'hour' | 'mark'

/** `pause`: all that workers are told: paused types, changed limits, and which worker is asked to stop. `definition`: what workers say of their types. */
export type RecordKind = 'schedule' | 'leader' | 'worker' | 'pause' | 'definition' | HistoryKind

export interface NewRecord {
  readonly name: string
  /** New with every change: the fence against a writer that has read an older one. */
  readonly revision: string
  /** JSON text. */
  readonly body: string
}

export interface StoredRecord extends NewRecord {
  /** When it was written last, by the store's clock. */
  readonly savedAtMs: number
  /** How long it is still valid, by the store's clock: 0 or less once it has expired, null if it never does. */
  readonly leftMs: number | null
}

export interface SaveOptions {
  /** Expires after this. A record that expires need not survive a power cut. */
  readonly ttlMs?: number
  readonly jobs?: readonly NewJob[]
}

/** How long `put` keeps a record after it has expired. */
export const EXPIRED_KEPT_MS = 86_400_000

export interface Records {
  /** By name, including those that have expired. */
  list(kind: RecordKind): Promise<readonly StoredRecord[]>
  /**
   * Stores the record and enqueues the jobs in one step if, and only if, the stored revision is `expected` (null: no such
   * record). Null when it is not: then nothing has changed.
   */
  save(
    kind: RecordKind,
    record: NewRecord,
    expected: string | null,
    options?: SaveOptions,
  ): Promise<readonly Receipt[] | null>
  /** Stores all of them, whatever was there, and deletes those of the kind that expired more than a day ago. */
  put(kind: RecordKind, records: readonly Omit<NewRecord, 'revision'>[], ttlMs: number): Promise<void>
  /** How many of them were there. */
  remove(kind: RecordKind, names: readonly string[]): Promise<number>
  /** Present where every change of a pause is heard within a second, so that polling is unnecessary. Returns the unsubscriber. */
  onChange?(listener: () => void): () => void
}

/** The revision of a record that was put: only the latest one counts, so nobody compares it. */
export const PUT_REVISION = ''

/** The fields of a body; none for text that is no JSON object. */
export function bodyFields(body: string): Readonly<Partial<Record<string, unknown>>> {
  try {
    const parsed: unknown = JSON.parse(body)
    return typeof parsed === 'object' && parsed !== null ? { ...parsed } : {}
  } catch {
    return {}
  }
}
