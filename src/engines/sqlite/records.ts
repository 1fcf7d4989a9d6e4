import type { Receipt } from '../../engine/engine.ts'
import {
  EXPIRED_KEPT_MS,
  PUT_REVISION,
  type RecordKind,
  type Records,
  type StoredRecord,
} from '../../engine/records.ts'
import type { SqliteCore } from './core.ts'
import { insertJobs } from './enqueue.ts'
import { PauseChanges } from './pause-changes.ts'

interface RecordRow {
  readonly name: string
  readonly revision: string
  readonly body: string
  readonly saved_at_ms: number
  readonly expires_at_ms: number | null
}

export const LIST_RECORDS = `
SELECT name, revision, body, saved_at_ms, expires_at_ms FROM millrace_records WHERE kind = :kind ORDER BY name`

export const FIND_REVISION = `SELECT revision FROM millrace_records WHERE kind = :kind AND name = :name`

const REPLACE = `ON CONFLICT (kind, name) DO UPDATE SET revision = excluded.revision, body = excluded.body,
  saved_at_ms = excluded.saved_at_ms, expires_at_ms = excluded.expires_at_ms`

export const SAVE_RECORD = `
INSERT INTO millrace_records (kind, name, revision, body, saved_at_ms, expires_at_ms)
VALUES (:kind, :name, :revision, :body, :now, :now + :ttlMs) ${REPLACE}`

/** All of them at once: `:records` is a JSON array. */
export const PUT_RECORDS = `
INSERT INTO millrace_records (kind, name, revision, body, saved_at_ms, expires_at_ms)
SELECT :kind, value ->> 'name', '${PUT_REVISION}', value ->> 'body', :now, :now + :ttlMs
FROM json_each(:records) WHERE true ${REPLACE}`

export const FORGET_EXPIRED = `DELETE FROM millrace_records WHERE kind = :kind AND expires_at_ms < :before`

export const REMOVE_RECORDS = `
DELETE FROM millrace_records WHERE kind = :kind AND name IN (SELECT value FROM json_each(:names))`

export function createRecords(core: SqliteCore): Records {
  const { connection, clock } = core
  const pauses = new PauseChanges(core.wakeups, connection.handle)
  return {
    async list(kind) {
      const records = await core.read(kind, () => listRecords(core, kind))
      if (!core.isBehind || records.every(({ leftMs }) => leftMs === null)) return records
      // The clock was set, and no write has moved the expiries with it yet.
      await core.followClock()
      return core.read(kind, () => listRecords(core, kind))
    },
    async save(kind, { name, revision, body }, expected, { ttlMs = null, jobs = [] } = {}) {
      const save = (individually: boolean): readonly Receipt[] | null => {
        core.assertUsable()
        const stored = connection.prepare(FIND_REVISION).get({ kind, name }) as { revision: string } | undefined
        if ((stored?.revision ?? null) !== expected) return null
        const now = clock.nowMs()
        connection.prepare(SAVE_RECORD).run({ kind, name, revision, body, now, ttlMs })
        return insertJobs(connection, jobs, { nowMs: now, individually })
      }
      // A power cut ends every holder of a record that expires too, so that one need not wait for the disk.
      const receipts = await (ttlMs === null || jobs.length > 0
        ? core.write(kind, save)
        : core.writeVolatile(kind, save))
      if (receipts !== null && receipts.length > 0) core.wakeups.notify()
      else if (ttlMs !== null) core.wakeups.wrote()
      if (kind === 'pause') pauses.tell()
      return receipts
    },
    async put(kind, records, ttlMs) {
      await core.writeVolatile(kind, () => {
        const now = clock.nowMs()
        connection.prepare(PUT_RECORDS).run({ kind, records: JSON.stringify(records), now, ttlMs })
        connection.prepare(FORGET_EXPIRED).run({ kind, before: now - EXPIRED_KEPT_MS })
      })
      core.wakeups.wrote()
    },
    async remove(kind, names) {
      const remove = (): number =>
        Number(connection.prepare(REMOVE_RECORDS).run({ kind, names: JSON.stringify(names) }).changes)
      const removed = await core.write(kind, remove)
      if (kind === 'pause') pauses.tell()
      return removed
    },
    onChange: (listener) => pauses.onChange(listener),
  }
}

export function listRecords(
  { connection, clock }: Pick<SqliteCore, 'connection' | 'clock'>,
  kind: RecordKind,
): readonly StoredRecord[] {
  const nowMs = clock.nowMs()
  const rows = connection.prepare(LIST_RECORDS).all({ kind }) as RecordRow[]
  return rows.map((row) => ({
    name: row.name,
    revision: row.revision,
    body: row.body,
    savedAtMs: row.saved_at_ms,
    leftMs: row.expires_at_ms === null ? null : row.expires_at_ms - nowMs,
  }))
}
