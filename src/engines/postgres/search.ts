import type { Step } from '../../engine/scan.ts'
import { SKEW_MS } from '../../engine/search-jobs.ts'
import type { JobView } from '../../job/job.ts'
import type { JobSearch } from '../../job/search.ts'
import { encodeTime, ULIDS_END } from '../../job/ulid.ts'
import { organisationsOf, searchTexts } from '../sql/search-texts.ts'
import type { Queries, Statement } from './database.ts'
import { LIVE, ms, NOW, viewColumns } from './fragments.ts'
import type { Names } from './names.ts'
import { inState, newestIds } from './newest.ts'
import { toView, type ViewRow } from './rows.ts'
import { FINISHED, HAS_ERROR } from './search-schema.ts'

/** Where the jobs come from that are looked at: the first that the search has. */
type Driver = 'tag' | 'key' | 'tenant' | 'error' | 'newest'

function driverOf({ tags, key, tenant, state, errors }: JobSearch): Driver {
  if (tags.length > 0) return 'tag'
  if (key !== undefined) return 'key'
  if (tenant !== undefined) return 'tenant'
  return state === undefined && errors.length > 0 ? 'error' : 'newest'
}

/** Which ends the range of ids has. Literals in the text instead of nulls in parameters, so that indexes are used. */
interface Ends {
  readonly low: boolean
  readonly high: boolean
}

/** Ids from $3 on and below $4, newest first, at most $5 of them. $2: the tag, the key or the organisations; $6: the type. */
function idsOf(driver: Driver, { state, type }: JobSearch, ends: Ends, names: Names): string {
  const { jobs, tags } = names
  const within = (id: string): string => `${ends.low ? `${id} >= $3` : 'true'} AND ${ends.high ? `${id} < $4` : 'true'}`
  const select = (where: string): string =>
    `SELECT job.id::text AS id FROM ${jobs} AS job WHERE job.type IS NOT NULL AND ${where} AND ${within('job.id::text')}`
  const newest = (where: string): string => `${select(where)} ORDER BY job.id::text DESC LIMIT $5`
  switch (driver) {
    case 'tag':
      return `SELECT job_id AS id FROM ${tags} WHERE tag = ($2::text[])[1] AND ${within('job_id')} ORDER BY job_id DESC LIMIT $5`
    case 'key': {
      const keyed = ['idempotency_key', 'latest_key'].flatMap((column) =>
        [LIVE, FINISHED].map((states) => select(`job.${column} = ($2::text[])[1] AND job.${states}`)),
      )
      return `SELECT id FROM (${keyed.join(' UNION ')}) AS keyed ORDER BY id DESC LIMIT $5`
    }
    case 'tenant':
      return `SELECT id FROM unnest($2::text[]) AS given (org) CROSS JOIN LATERAL (
    ${newest(`job.tenant IS NOT NULL AND job.tenant ->> 'orgId' = given.org`)}) AS found ORDER BY id DESC LIMIT $5`
    case 'error':
      return newest(HAS_ERROR)
    case 'newest':
      return newestIds({ state, type: type === undefined ? null : '$6::text', within, limit: '$5' }, names)
    default:
      return driver satisfies never
  }
}

const lower = (text: string): string => `lower((${text}) COLLATE "C")`
const ERROR = `coalesce(job.fail_code, '') || ' ' || coalesce(job.fail_reason, '') || ' ' || coalesce(job.error_record::text, '')`
const WORDS = `job.id::text || ' ' || job.type || ' ' || coalesce(job.idempotency_key, '') || ' ' || coalesce(job.latest_key, '') || ' '
  || coalesce(job.tenant::text, '') || coalesce(job.options::text, '') || ${ERROR}`

function containsAll(parameter: string, text: string): string {
  return `NOT EXISTS (SELECT FROM unnest(${parameter}::text[]) AS part WHERE strpos(${text}, part) = 0)`
}

const STATEMENTS = new Map<string, Statement>()

/** Rows that cannot match are left out: by $6, the type, and by texts that they must contain: $7 in the error, $8 anywhere, $9 in the payload. */
export function statementOf(search: JobSearch, ends: Ends): Statement {
  const { state } = search
  const driver = driverOf(search)
  const parts = [
    state !== undefined && (inState(state) ?? 'false'),
    search.type !== undefined && 'job.type = $6::text',
    search.errors.length > 0 && containsAll('$7', lower(ERROR)),
    search.words.length > 0 && containsAll('$8', lower(WORDS)),
    search.payload.length > 0 && containsAll('$9', 'job.payload::text'),
  ]
  const fits = parts.filter((part) => typeof part === 'string').join(' AND ') || 'true'
  const key = `${driver} ${ends.low} ${ends.high} ${fits}`
  const statement = STATEMENTS.get(key) ?? ((names) => searchSql(names, idsOf(driver, search, ends, names), fits))
  STATEMENTS.set(key, statement)
  return statement
}

/** The server must know the type of each parameter, also of those that a search does not need. */
const TYPED = `$2::text[] IS NULL OR $3::text IS NULL OR $4::text IS NULL OR $5::int IS NULL OR $6::text IS NULL OR $7::text[] IS NULL
    OR $8::text[] IS NULL OR $9::text[] IS NULL`

/**
 * One row at least, which says how many were looked at, the last of them, and how far back the last fifty are. OFFSET 0
 * keeps the planner from reading the whole table for what it takes for many ids.
 */
function searchSql({ jobs }: Names, ids: string, fits: string): string {
  return `WITH looked AS MATERIALIZED (${ids}),
tail AS (SELECT id FROM looked ORDER BY id LIMIT 50)
SELECT summary.*, found.*, ${NOW} AS now FROM (
  SELECT (SELECT count(*)::int FROM looked) AS looked, (SELECT min(id) FROM looked) AS last_id,
    (SELECT max(at.created_ms) FROM tail CROSS JOIN LATERAL (
      SELECT ${ms('job.created_at')} AS created_ms FROM ${jobs} AS job WHERE job.id::text = tail.id OFFSET 0) AS at) AS tail_ms,
    EXISTS (SELECT FROM ${jobs} WHERE id::text >= '${ULIDS_END}') AS has_foreign,
    (${TYPED}) AS typed) AS summary
LEFT JOIN (
  SELECT fitting.*, looked.id AS looked_id FROM looked CROSS JOIN LATERAL (
    SELECT ${viewColumns('job')} FROM ${jobs} AS job WHERE job.id::text = looked.id AND ${fits} OFFSET 0) AS fitting
) AS found ON true ORDER BY found.looked_id DESC`
}

interface SearchRow extends Omit<ViewRow, 'id'> {
  readonly looked: number
  readonly last_id: string | null
  readonly tail_ms: number | null
  readonly has_foreign: boolean
  /** Null in the one row of a step that found nothing. */
  readonly id: string | null
}

/** Half of all ids that are no ULIDs stand behind those. */
export const HAS_FOREIGN_ID = ({ jobs }: Names): string =>
  `SELECT EXISTS (SELECT FROM ${jobs} WHERE id::text >= '${ULIDS_END}') AS found, ${NOW} AS now`

export async function searchStep(
  queries: Queries,
  search: JobSearch,
  { before, max }: { readonly before?: string; readonly max: number },
): Promise<Step<JobView, string>> {
  const { low, high } = await rangeOf(queries, search, before)
  const statement = statementOf(search, { low: low !== null, high: high !== null })
  const texts = searchTexts(search)
  const given = [search.type ?? null, texts.errors, texts.words, texts.payload]
  const rows = await queries.rows<SearchRow>(statement, subjectOf(search), low, high, max, ...given)
  const [first] = rows
  const { looked = 0, last_id: last = null, tail_ms: tailMs = null, has_foreign: hasForeign = true } = first ?? {}
  return {
    items: rows.flatMap(({ id, ...row }) => (id === null ? [] : [toView({ ...row, id })])),
    looked,
    last: looked < max ? null : last,
    reachedMs: hasForeign || tailMs === null ? null : tailMs + SKEW_MS,
  }
}

function subjectOf({ tags, key, tenant }: JobSearch): readonly string[] | null {
  const [tag] = tags
  const one = tag ?? key
  if (one !== undefined) return [one]
  return tenant === undefined ? null : organisationsOf(tenant)
}

/** Times are a range of ids, unless another program has chosen some of these. */
async function rangeOf(
  queries: Queries,
  { sinceMs, untilMs }: JobSearch,
  before: string | undefined,
): Promise<{ readonly low: string | null; readonly high: string | null }> {
  const all = { low: null, high: before ?? null }
  if (sinceMs === undefined && untilMs === undefined) return all
  const [foreign] = await queries.rows<{ found: boolean }>(HAS_FOREIGN_ID)
  if (foreign?.found !== false) return all
  const low = sinceMs === undefined ? null : timeId(sinceMs - SKEW_MS)
  if (untilMs === undefined) return { low, high: all.high }
  const high = timeId(untilMs + SKEW_MS)
  return { low, high: before !== undefined && before < high ? before : high }
}

function timeId(atMs: number): string {
  return encodeTime(Math.max(0, Math.floor(atMs)))
}
