import type { Receipt } from '../../engine/engine.ts'
import {
  EXPIRED_KEPT_MS,
  type NewRecord,
  PUT_REVISION,
  type RecordKind,
  type Records,
  type SaveOptions,
  type StoredRecord,
} from '../../engine/records.ts'
import type { PostgresCore } from './core.ts'
import type { Queries } from './database.ts'
import { arrayOf } from './driver.ts'
import { insertJobs } from './enqueue.ts'
import { after, ms, NOW } from './fragments.ts'
import type { Names } from './names.ts'

interface RecordRow {
  readonly name: string
  readonly revision: string
  readonly body: string
  readonly saved_ms: number
  readonly left_ms: number | null
}

export const LIST_RECORDS = ({ records }: Names): string => `
SELECT name, revision, body, ${ms('saved_at')} AS saved_ms, ${ms('expires_at')} - ${ms(NOW)} AS left_ms
FROM ${records} WHERE kind = $2 ORDER BY name`

/** No row comes back if there is one of this name. */
export const ADD_RECORD = ({ records }: Names): string => `
INSERT INTO ${records} (kind, name, revision, body, saved_at, expires_at)
VALUES ($2, $3, $4, $5, ${NOW}, ${after('$6::float8')}) ON CONFLICT DO NOTHING RETURNING name`

/** No row comes back if the revision is another: of two keepers that fire one tick, one succeeds. */
export const CHANGE_RECORD = ({ records }: Names): string => `
UPDATE ${records} SET revision = $4, body = $5, saved_at = ${NOW}, expires_at = ${after('$6::float8')}
WHERE kind = $2 AND name = $3 AND revision = $7 RETURNING name`

/** All of them at once. */
export const PUT_RECORDS = ({ records }: Names): string => `
INSERT INTO ${records} (kind, name, revision, body, saved_at, expires_at)
SELECT $2::text, name, '${PUT_REVISION}', body, ${NOW}, ${after('$3::float8')}
FROM json_to_recordset($4::json) AS put(name text, body text)
ON CONFLICT (kind, name) DO UPDATE
SET revision = excluded.revision, body = excluded.body, saved_at = excluded.saved_at, expires_at = excluded.expires_at`

export const FORGET_EXPIRED = ({ records }: Names): string =>
  `DELETE FROM ${records} WHERE kind = $2 AND expires_at < ${after('-$3::float8')}`

export const REMOVE_RECORDS = ({ records }: Names): string =>
  `DELETE FROM ${records} WHERE kind = $2 AND name = ANY($3::text[]) AND ${NOW} IS NOT NULL RETURNING name`

/** How old the last look at the server's clock may be: expiries are moved with it when it is set. */
const CLOCK_AGE_MS = 2_000

export function createRecords(core: PostgresCore): Records {
  return {
    list: (kind) =>
      core.call(kind, async (database) => {
        await core.steps.follow(CLOCK_AGE_MS)
        return listRecords(database, kind)
      }),
    async save(kind, record, expected, options = {}) {
      const receipts = await core.call(kind, async (database) => {
        core.schema.assertKnown()
        return database.transaction((queries) => save(queries, { ...record, kind }, expected, options))
      })
      if (receipts !== null && receipts.length > 0) core.added({ mayPrecede: true })
      return receipts
    },
    put: (kind, records, ttlMs) =>
      core.call(kind, async (database) => {
        await database.rows(PUT_RECORDS, kind, ttlMs, JSON.stringify(records))
        await database.rows(FORGET_EXPIRED, kind, EXPIRED_KEPT_MS)
      }),
    remove: (kind, names) =>
      core.call(kind, async (database) => (await database.rows(REMOVE_RECORDS, kind, arrayOf(names))).length),
  }
}

export async function listRecords(queries: Queries, kind: RecordKind): Promise<readonly StoredRecord[]> {
  const rows = await queries.rows<RecordRow>(LIST_RECORDS, kind)
  return rows.map((row) => ({
    name: row.name,
    revision: row.revision,
    body: row.body,
    savedAtMs: row.saved_ms,
    leftMs: row.left_ms,
  }))
}

/** The record goes first: a keeper that finds another revision has stored no job. */
async function save(
  queries: Queries,
  { kind, name, revision, body }: NewRecord & { readonly kind: RecordKind },
  expected: string | null,
  { ttlMs = null, jobs = [] }: { readonly ttlMs?: number | null; readonly jobs?: SaveOptions['jobs'] },
): Promise<readonly Receipt[] | null> {
  const values = [kind, name, revision, body, ttlMs]
  const saved =
    expected === null
      ? await queries.rows(ADD_RECORD, ...values)
      : await queries.rows(CHANGE_RECORD, ...values, expected)
  if (saved.length === 0) return null
  return jobs.length === 0 ? [] : insertJobs(queries, jobs)
}
