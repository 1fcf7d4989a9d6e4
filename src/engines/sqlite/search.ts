import type { Step } from '../../engine/scan.ts'
import { reachedBy, SKEW_MS, TAIL } from '../../engine/search-jobs.ts'
import type { JobView } from '../../job/job.ts'
import type { JobSearch } from '../../job/search.ts'
import { storedAs } from '../../job/states.ts'
import { encodeTime, ULIDS_END } from '../../job/ulid.ts'
import { fromIso } from '../../time/iso.ts'
import { organisationsOf, searchTexts } from '../sql/search-texts.ts'
import type { Connection } from './database.ts'
import { listRowids, newest, placeOf, typesOf, VIEW_ROWS } from './inspector.ts'
import { toView, type ViewRow } from './rows.ts'
import { ORGANISATION } from './tags.ts'

/** Other programs choose their own ids, whose order is not that of time. Half of all UUIDs stand behind the ULIDs. */
export const HAS_FOREIGN_ID = `SELECT 1 AS found FROM job_queue WHERE id >= '${ULIDS_END}' LIMIT 1`

/** A newer version of a latest key has the place of the older one: with such jobs places are not in the order of time. */
export const HAS_LATEST = `SELECT 1 AS found FROM job_queue INDEXED BY idx_job_queue_latest WHERE latest_key IS NOT NULL LIMIT 1`

/** The tags of a job that another program has deleted are still there. */
export const BY_TAG = `
SELECT job_queue.rowid AS rowid, job_id AS id FROM job_tags LEFT JOIN job_queue ON job_queue.id = job_id
WHERE tag = :tag AND job_id >= :low AND job_id < :high ORDER BY job_id DESC LIMIT :max`

export const BY_TIME = `
SELECT rowid, id FROM job_queue WHERE id >= :low AND id < :high ORDER BY id DESC LIMIT :max`

export const BY_TENANT = `
SELECT rowid FROM job_queue INDEXED BY idx_job_queue_tenant
WHERE tenant IS NOT NULL AND ${ORGANISATION} = :value AND rowid <= :place ORDER BY rowid DESC LIMIT :max`

export const BY_KEY = `SELECT rowid FROM job_queue WHERE idempotency_key = :value AND rowid <= :place LIMIT :max`

export const BY_RELEASED_KEY = `
SELECT rowid FROM job_queue INDEXED BY idx_job_queue_released
WHERE released_key = :value AND rowid <= :place ORDER BY rowid DESC LIMIT :max`

export const BY_LATEST_KEY = `
SELECT rowid FROM job_queue INDEXED BY idx_job_queue_latest
WHERE type = :type AND latest_key = :value AND rowid <= :place ORDER BY rowid DESC LIMIT :max`

/** Qualified, because json_each has columns of such names too. */
const ERROR = `concat(job_queue.error, job_queue.error_record)`
const WORDS = `concat(job_queue.id, ' ', job_queue.type, ' ', coalesce(job_queue.idempotency_key, job_queue.released_key), ' ',
  job_queue.latest_key, ' ', job_queue.tenant, job_queue.options, job_queue.error, job_queue.error_record)`

/** A null parameter filters nothing. */
function containsAll(parameter: string, text: string): string {
  return `(${parameter} IS NULL OR NOT EXISTS (SELECT 1 FROM json_each(${parameter}) WHERE instr(${text}, value) = 0))`
}

/** Which of these rows may match, without showing them. */
export const LOOK_AT = `
SELECT rowid, id, created_at, (:type IS NULL OR type = :type) AND (:stored IS NULL OR (status = :stored AND ended IS :ended))
  AND (:errors IS NULL OR error IS NOT NULL) AND ${containsAll(':errors', `lower(${ERROR})`)}
  AND ${containsAll(':words', `lower(${WORDS})`)} AND ${containsAll(':payload', 'job_queue.payload')} AS fits
FROM job_queue WHERE rowid IN (SELECT value FROM json_each(:rowids))`

type Looked = [rowid: number, id: string, createdAt: string, fits: 0 | 1]

/** Rows in the order of a driver, before they are looked at. */
interface Found {
  readonly rowids: readonly number[]
  readonly count: number
  /** The last id, where the order is that of ids. */
  readonly lastId?: string | undefined
}

interface StepPage {
  readonly before?: string
  readonly max: number
}

/** Inside a read. */
export function searchStep(connection: Connection, search: JobSearch, page: StepPage): Step<JobView, string> {
  const isOrdered = !has(connection, HAS_FOREIGN_ID)
  const isById = search.tags.length > 0 || (isOrdered && isByTime(search))
  const found = isById ? inOrderOfIds(connection, search, page, isOrdered) : inOrderOfPlaces(connection, search, page)
  const looked = lookAt(connection, search, found.rowids)
  // In the order in which they were found: a page goes on behind its last job.
  const rows = found.rowids.map((rowid) => looked.get(rowid)).filter((row) => row !== undefined)
  const end = found.count < page.max ? null : (found.lastId ?? rows.at(-1)?.[1] ?? null)
  return {
    items: viewsOf(connection, rows),
    looked: found.count,
    last: end,
    reachedMs: isById && !isOrdered ? null : reachedMs(connection, rows, isById),
  }
}

function has(connection: Connection, statement: string): boolean {
  return connection.prepare(statement).get({}) !== undefined
}

/** Only times, and what no index helps with. */
function isByTime({ sinceMs, untilMs, key, tenant, type, state, errors }: JobSearch): boolean {
  const isTimed = sinceMs !== undefined || untilMs !== undefined
  return isTimed && [key, tenant, type, state, errors[0]].every((part) => part === undefined)
}

const LAST_ID = '\u{10ffff}'

function inOrderOfIds(connection: Connection, search: JobSearch, page: StepPage, isOrdered: boolean): Found {
  const { sinceMs, untilMs, tags } = search
  const [tag] = tags
  const bound = (ms: number | undefined): string | null =>
    ms === undefined || !isOrdered ? null : encodeTime(Math.max(0, Math.floor(ms)))
  const low = bound(sinceMs === undefined ? undefined : sinceMs - SKEW_MS) ?? ''
  const end = bound(untilMs === undefined ? undefined : untilMs + SKEW_MS) ?? LAST_ID
  const high = page.before !== undefined && page.before < end ? page.before : end
  const range = { low, high, max: page.max }
  const statement = connection.prepare(tag === undefined ? BY_TIME : BY_TAG)
  const rows = statement.all(tag === undefined ? range : { ...range, tag }) as { rowid: number | null; id: string }[]
  return { rowids: rows.flatMap(({ rowid }) => rowid ?? []), count: rows.length, lastId: rows.at(-1)?.id }
}

function inOrderOfPlaces(connection: Connection, search: JobSearch, { before, max }: StepPage): Found {
  const place = placeOf(connection, before)
  if (place === null) return { rowids: [], count: 0 }
  const { key, tenant, type, state, errors } = search
  const read = (statement: string, value: string, more = {}): readonly number[] =>
    listRowids(connection.prepare(statement).all({ value, place, max, ...more }))
  const merged = (rowids: readonly number[]): readonly number[] =>
    [...new Set(rowids)].sort((a, b) => b - a).slice(0, max)
  const rowids = (): readonly number[] => {
    if (key !== undefined) {
      const latest = typesOf(connection).flatMap((one) => read(BY_LATEST_KEY, key, { type: one }))
      return merged([...read(BY_KEY, key), ...read(BY_RELEASED_KEY, key), ...latest])
    }
    if (tenant !== undefined) return merged(organisationsOf(tenant).flatMap((org) => read(BY_TENANT, org)))
    return newest(connection, { type, state, limit: max, isFailed: errors.length > 0 }, place)
  }
  const found = rowids()
  return { rowids: found, count: found.length }
}

function lookAt(connection: Connection, search: JobSearch, rowids: readonly number[]): ReadonlyMap<number, Looked> {
  const { type = null, state } = search
  const { stored, ended } = state === undefined ? { stored: null, ended: null } : storedAs(state)
  const texts = searchTexts(search)
  const listed = (parts: readonly string[], isAsked = parts.length > 0) => (isAsked ? JSON.stringify(parts) : null)
  const rows = connection.prepareArrays(LOOK_AT).all({
    ...{ type, stored, ended, rowids: JSON.stringify(rowids) },
    errors: listed(texts.errors, search.errors.length > 0),
    words: listed(texts.words),
    payload: listed(texts.payload),
  }) as Looked[]
  return new Map(rows.map((row) => [row[0], row]))
}

function viewsOf(connection: Connection, rows: readonly Looked[]): readonly JobView[] {
  const fitting = rows.filter(([, , , fits]) => fits === 1).map(([rowid]) => rowid)
  if (fitting.length === 0) return []
  const found = connection.prepare(VIEW_ROWS).all({ rowids: JSON.stringify(fitting) }) as ViewRow[]
  const byPlace = new Map(found.map((row) => [row.rowid, row]))
  return fitting.flatMap((rowid) => byPlace.get(rowid) ?? []).map(toView)
}

/** Places are in the order of arrival, whatever the ids are, unless jobs have latest keys. */
function reachedMs(connection: Connection, rows: readonly Looked[], isById: boolean): number | null {
  if (!isById && has(connection, HAS_LATEST)) return null
  const looked = isById ? rows : rows.slice(-TAIL)
  return reachedBy(looked.map(([, id, createdAt]) => ({ id: isById ? id : ANY_ULID, createdAtMs: fromIso(createdAt) })))
}

const ANY_ULID = encodeTime(0).padEnd(26, '0')
