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
import { CLOCK_COLUMNS, type ClockRow } from './clock.ts'
import type { PostgresCore } from './core.ts'
import type { Queries } from './database.ts'
import { arrayOf } from './driver.ts'
import { insertJobs } from './enqueue.ts'
import { after, ms, NOW } from './fragments.ts'
import type { Names } from './names.ts'

/** The server's time comes with every answer: where there are no records, in one row without a name. */
interface ListedRow extends ClockRow {
  readonly name: string | null
  readonly revision: string
  readonly body: string
  readonly saved_ms: number
  readonly left_ms: number | null
}

export const LIST_RECORDS = (names: Names): string => `
SELECT name, revision, body, ${ms('saved_at')} AS saved_ms, ${ms('expires_at')} - now_ms AS left_ms, now_ms, followed_ms
FROM (SELECT ${CLOCK_COLUMNS(names)}) AS clock LEFT JOIN ${names.records} ON kind = $2 ORDER BY name`

/** No row comes back if there is one of this name. */
export const ADD_RECORD = ({ records }: Names): string => `
INSERT INTO ${records} (kind, name, revision, body, saved_at, expires_at)
VALUES ($2, $3, $4, $5, ${NOW}, ${after('$6::float8')}) ON CONFLICT DO NOTHING RETURNING name`

/** No row comes back if the revision is another: of two keepers that fire one tick, one succeeds. */
export const CHANGE_RECORD = ({ records }: Names): string => `
UPDATE ${records} SET revision = $4, body = $5, saved_at = ${NOW}, expires_at = ${after('$6::float8')}
WHERE kind = $2 AND name = $3 AND revision = $7 RETURNING name`

/** All of them at once. What expired long ago goes; a record that is put again may be among that. */
export const PUT_RECORDS = ({ records }: Names): string => `
WITH put AS (SELECT name, body FROM json_to_recordset($4::json) AS put(name text, body text)),
  forgotten AS (DELETE FROM ${records} WHERE kind = $2 AND expires_at < ${after('-$5::float8')} AND name NOT IN (SELECT name FROM put))
INSERT INTO ${records} (kind, name, revision, body, saved_at, expires_at)
SELECT $2::text, name, '${PUT_REVISION}', body, ${NOW}, ${after('$3::float8')}
FROM put
ON CONFLICT (kind, name) DO UPDATE
SET revision = excluded.revision, body = excluded.body, saved_at = excluded.saved_at, expires_at = excluded.expires_at`

export const REMOVE_RECORDS = ({ records }: Names): string =>
  `DELETE FROM ${records} WHERE kind = $2 AND name = ANY($3::text[]) AND ${NOW} IS NOT NULL RETURNING name`

export function createRecords(core: PostgresCore): Records {
  // What a process asks now and then it asks at the same moments: on one connection it wakes up once for all answers.
  const line = core.database.inLine()
  return {
    list: (kind) => core.call(kind, () => listInTime(core, line, kind)),
    async save(kind, record, expected, options = {}) {
      const receipts = await core.call(kind, async (database) => {
        core.schema.assertKnown()
        const saving = (queries: Queries) => save(queries, { ...record, kind }, expected, options)
        // Without jobs it is one statement.
        return options.jobs === undefined || options.jobs.length === 0 ? saving(line) : database.transaction(saving)
      })
      if (receipts !== null && receipts.length > 0) core.added({ mayPrecede: true })
      return receipts
    },
    put: (kind, records, ttlMs) =>
      core.call(kind, async () => {
        await line.rows(PUT_RECORDS, kind, ttlMs, JSON.stringify(records), EXPIRED_KEPT_MS)
      }),
    remove: (kind, names) =>
      core.call(kind, async () => (await line.rows(REMOVE_RECORDS, kind, arrayOf(names))).length),
    onChange: (listener) => core.pauses.onChange(listener),
  }
}

/** Expiries are moved with the server's clock when it was set, so a list that was read before is read again. */
async function listInTime({ steps, clock }: PostgresCore, queries: Queries, kind: RecordKind) {
  if (steps.isStepped) await steps.follow()
  const askedAtMs = clock.monotonicMs()
  const { records, time } = await readRecords(queries, kind)
  if (time === null || (await steps.heard(time, askedAtMs))) return records
  return listRecords(queries, kind)
}

export async function listRecords(queries: Queries, kind: RecordKind): Promise<readonly StoredRecord[]> {
  return (await readRecords(queries, kind)).records
}

async function readRecords(queries: Queries, kind: RecordKind) {
  const rows = await queries.rows<ListedRow>(LIST_RECORDS, kind)
  const [first] = rows
  const records = rows.flatMap(({ name, revision, body, saved_ms: savedAtMs, left_ms: leftMs }): StoredRecord[] =>
    name === null ? [] : [{ name, revision, body, savedAtMs, leftMs }],
  )
  return { records, time: first === undefined ? null : { nowMs: first.now_ms, followedMs: first.followed_ms } }
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
