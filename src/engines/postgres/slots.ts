import type { SubscribedType } from '../../engine/engine.ts'
import { locked, places, probe } from './claim.ts'
import { agedBy, CLAIMABLE, DUE, HAS_TENANT, ms, NOW, type Rank, TENANT } from './fragments.ts'
import type { Names } from './names.ts'
import { ANSWER, judgedSql, recordedSql } from './rate-limits.ts'

/** A claim chooses among this many tenants; the next one goes on behind them. */
const TENANTS_MAX = 100

/** Jobs without a tenant are in no index of their own: a claim looks for them among this many, and the next one goes on. */
const WINDOW_ROWS = 1_000

/** The first claimable job of the next tenant of a lane. */
function nextTenant(jobs: string, lane: string, after: string): string {
  return `SELECT ${TENANT} AS name FROM ${jobs} WHERE type = ${lane}.type AND ${HAS_TENANT} AND ${TENANT} > ${after}
      ORDER BY ${TENANT} LIMIT 1`
}

/** The first jobs of a tenant and priority that fall due before or after now. */
function jobsOf(jobs: string, when: '<=' | '>', bound: string): string {
  return `SELECT id, ${DUE} AS due, arrival FROM ${jobs} WHERE type = own.type AND ${TENANT} = own.name
      AND priority = rank.priority AND ${HAS_TENANT} AND ${DUE} ${when} ${NOW} ORDER BY ${DUE}, arrival LIMIT ${bound}`
}

/** Compares like the columns by which a claim orders jobs. */
const place = (rank: string): string => `ARRAY[${rank}, date_part('epoch', due), arrival]::float8[]`

/**
 * Claims jobs of types of which some have slots. $2 to $12 as in CLAIM_LIMITED, then for each lane its slots ($13; null: no
 * bound), whether each tenant has them ($14), and where to go on among tenants ($15) and jobs ($16 to $18).
 *
 * Running jobs are counted as of the start of the statement, and the row of the type is locked later. Each claim counts in
 * that row: if another one has been there in between, the type is left out as if it were locked. What ends a lease does not
 * count there: a slot that it frees is found by the next claim.
 */
export const CLAIM_SLOTS = (names: Names): string => claimBySlots(names, (priority) => priority)

/** The same with ageing, one rank in $19 milliseconds. */
export const CLAIM_SLOTS_AGED = (names: Names): string => claimBySlots(names, agedBy('$19'))

const claimBySlots = ({ jobs, limits }: Names, rank: Rank): string => `
WITH RECURSIVE lanes AS MATERIALIZED (
  SELECT * FROM unnest($2::text[], $3::int[], $4::float8[], $5::int[], $6::timestamptz[], $10::float8[], $11::float8[],
      $13::int[], $14::bool[], $15::text[], $16::int[], $17::timestamptz[], $18::bigint[])
    AS lane (type, bound, lease_ms, at_priority, since, starts_max, per_ms,
      slots_max, by_tenant, after_tenant, after_priority, after_due, after_arrival)),
held AS MATERIALIZED (
  SELECT type, started_at, started, claims FROM ${limits} WHERE type = ANY ($12::text[]) ORDER BY type FOR UPDATE SKIP LOCKED),
locked AS MATERIALIZED (
  SELECT held.* FROM held JOIN lanes AS lane ON lane.type = held.type JOIN ${limits} AS seen ON seen.type = held.type
  WHERE lane.slots_max IS NULL OR seen.claims = held.claims),
${judgedSql()},
${runningSql(jobs)},
open AS MATERIALIZED (
  SELECT * FROM (
    SELECT lane.type, lane.lease_ms, lane.at_priority, lane.since, lane.slots_max, lane.by_tenant, lane.after_tenant,
      lane.after_priority, lane.after_due, lane.after_arrival, least(lane.bound, judged.starts_left,
        CASE WHEN NOT lane.by_tenant THEN lane.slots_max - coalesce(running.jobs, 0) END)::int AS bound
    FROM lanes AS lane LEFT JOIN judged ON judged.type = lane.type
    LEFT JOIN running ON running.type = lane.type AND NOT lane.by_tenant
    WHERE judged.type IS NOT NULL OR lane.starts_max IS NULL AND lane.slots_max IS NULL) AS lane WHERE bound > 0),
${takenBySlots(jobs, rank)},
${recordedSql({ jobs, limits })}
SELECT ${ANSWER}, ${besideSlots(jobs)}
FROM moment`

/** The parameters of CLAIM_SLOTS that CLAIM_LIMITED does not have. */
export function slotColumns(
  lanes: readonly { readonly type: string }[],
  types: readonly (SubscribedType | undefined)[],
  rounds: Rounds,
): readonly unknown[] {
  const positions = lanes.map(({ type }) => rounds.of(type))
  return [
    types.map((type) => type?.slots?.max ?? null),
    types.map((type) => type?.slots?.by === 'tenant'),
    positions.map(({ tenant }) => tenant),
    ...[0, 1, 2].map((index) => positions.map(({ job }) => job[index])),
  ]
}

/** How many jobs of each lane with slots hold a lease, for each tenant where it has slots of its own. Expired leases count too. */
export function runningSql(jobs: string): string {
  return `running AS MATERIALIZED (
  SELECT lane.type, CASE WHEN lane.by_tenant THEN ${TENANT} ELSE '' END AS name, count(*)::int AS jobs
  FROM lanes AS lane JOIN ${jobs} AS job ON job.type = lane.type AND job.status = 'processing'
  WHERE lane.slots_max IS NOT NULL GROUP BY 1, 2)`
}

/**
 * The CTEs that choose the rows to lease where lanes of \`open\` have slots. Lanes whose tenants share slots are read as
 * elsewhere. Of the others, \`tenants\` goes from one tenant to the next in the index without reading its jobs, and
 * \`groups\` are those with a free slot. The tenant with the fewest running jobs is next; against other types a lane counts
 * with its most urgent job that may start (\`place\`).
 */
export function takenBySlots(jobs: string, rank: Rank): string {
  return `${places('(SELECT * FROM open WHERE NOT by_tenant) AS lane')},
plain AS (
  SELECT type, priority, since, lease_ms, ${place(rank('priority', 'due'))} AS place FROM (
    SELECT place.*, found.due, found.arrival,
      row_number() OVER (PARTITION BY place.type ORDER BY ${rank('place.priority', 'found.due')}, found.due, found.arrival) AS nth
    FROM places AS place CROSS JOIN LATERAL (
      ${probe(jobs, 'place', `${DUE} AS due, arrival`, 'place.bound')}) AS found) AS candidate
  WHERE nth <= bound),
tenants AS (
  SELECT lane.type, lane.slots_max, lane.bound, 1 AS nth, first.name FROM open AS lane CROSS JOIN LATERAL (
      ${nextTenant(jobs, 'lane', 'lane.after_tenant')}) AS first WHERE lane.by_tenant
  UNION ALL
  SELECT last.type, last.slots_max, last.bound, last.nth + 1, next.name FROM tenants AS last CROSS JOIN LATERAL (
      ${nextTenant(jobs, 'last', 'last.name')}) AS next WHERE last.nth < ${TENANTS_MAX}),
near AS MATERIALIZED (
  SELECT lane.type, lane.slots_max, lane.bound, job.*, row_number() OVER (PARTITION BY lane.type ORDER BY job.priority, job.due, job.arrival) AS nth
  FROM open AS lane CROSS JOIN LATERAL (
    SELECT id, priority, ${DUE} AS due, arrival, tenant IS NULL AS is_free FROM ${jobs}
    WHERE type = lane.type AND ${CLAIMABLE} AND (priority, ${DUE}, arrival) > (lane.after_priority, lane.after_due, lane.after_arrival)
    ORDER BY priority, ${DUE}, arrival LIMIT ${WINDOW_ROWS}) AS job WHERE lane.by_tenant),
groups AS MATERIALIZED (
  SELECT known.type, known.name, known.bound, coalesce(running.jobs, 0) AS running, known.slots_max - coalesce(running.jobs, 0) AS slots_left
  FROM (SELECT type, name, slots_max, bound FROM tenants
    UNION SELECT type, '', slots_max, bound FROM near WHERE is_free) AS known
  LEFT JOIN running ON running.type = known.type AND running.name = known.name
  WHERE coalesce(running.jobs, 0) < known.slots_max),
fair AS (
  SELECT *, row_number() OVER (PARTITION BY type ORDER BY running + nth, ${rank('priority', 'due')}, due, arrival) AS turn FROM (
    SELECT *, row_number() OVER (PARTITION BY type, name ORDER BY ${rank('priority', 'due')}, due, arrival) AS nth FROM (
      SELECT own.*, rank.priority, job.id, job.due, job.arrival
      FROM groups AS own CROSS JOIN generate_series(1, 10) AS rank (priority) CROSS JOIN LATERAL (
      ${jobsOf(jobs, '<=', 'least(own.slots_left, own.bound)')}) AS job
      UNION ALL SELECT own.*, near.priority, near.id, near.due, near.arrival
      FROM groups AS own JOIN near ON near.type = own.type AND near.is_free AND near.due <= ${NOW} WHERE own.name = '') AS ready) AS ordered
  WHERE nth <= slots_left),
chosen AS MATERIALIZED (
  SELECT * FROM (
    SELECT type, priority, since, lease_ms, NULL::text AS id, place, 0 AS turn FROM plain
    UNION ALL SELECT type, priority, NULL, NULL, id::text, min(${place(rank('priority', 'due'))}) OVER (
      PARTITION BY type ORDER BY turn ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING), turn FROM fair WHERE turn <= bound) AS candidate
  ORDER BY place, turn LIMIT $7),
wanted AS (
  SELECT type, priority, since, lease_ms, count(*) AS jobs FROM chosen WHERE id IS NULL GROUP BY type, priority, since, lease_ms),
${locked(jobs, 'taken_plain')},
taken_fair AS MATERIALIZED (
  SELECT job.id, (SELECT lease_ms FROM lanes WHERE lanes.type = job.type) AS lease_ms FROM ${jobs} AS job
  WHERE job.id::text = ANY (ARRAY(SELECT id FROM chosen WHERE id IS NOT NULL)) AND ${CLAIMABLE} FOR UPDATE SKIP LOCKED),
taken AS MATERIALIZED (SELECT * FROM taken_plain UNION ALL SELECT * FROM taken_fair)`
}

/** When the next job that has a free slot falls due, read only by a claim that took none, and where the next claim goes on. */
export function besideSlots(jobs: string): string {
  return `(SELECT ${ms('min(due)')} FROM (
    SELECT job.due FROM groups AS own CROSS JOIN generate_series(1, 10) AS rank (priority) CROSS JOIN LATERAL (
      ${jobsOf(jobs, '>', '1')}) AS job
    UNION ALL SELECT near.due FROM groups AS own JOIN near ON near.type = own.type AND near.is_free AND near.due > ${NOW}
      WHERE own.name = '') AS later WHERE NOT EXISTS (SELECT FROM taken)) AS next_ms,
  (SELECT json_agg(json_build_array(type, name)) FROM tenants WHERE nth = ${TENANTS_MAX}) AS last_tenants,
  (SELECT json_agg(json_build_array(type, priority, due::text, arrival::text)) FROM near WHERE nth = ${WINDOW_ROWS}) AS last_jobs`
}

/** Where the claims of a consumer go on, by type. */
interface Position {
  readonly tenant: string
  readonly job: readonly [priority: number, due: string, arrival: string]
}

/** Nothing sorts before these. No tenant is empty. */
const START: Position = { tenant: '', job: [0, '-infinity', '0'] }

/** Of types whose claim did not read to the end: the last tenant, and the last job, that it read. */
export interface LastRead {
  readonly last_tenants?: readonly (readonly [type: string, tenant: string])[] | null
  readonly last_jobs?:
    | readonly (readonly [type: string, priority: number, due: string, arrival: string | null])[]
    | null
}

/** What the last claims left unread, because each reads a bounded number of tenants and jobs. */
export class Rounds {
  readonly #positions = new Map<string, Position>()

  of(type: string): Position {
    return this.#positions.get(type) ?? START
  }

  /** Whether the next claim of one of these types goes on behind the last one, instead of from the start. */
  isOpen(types: readonly string[]): boolean {
    return types.some((type) => this.#positions.has(type))
  }

  advance(types: readonly string[], { last_tenants, last_jobs }: LastRead): void {
    for (const type of types) {
      const tenant = last_tenants?.find(([own]) => own === type)?.[1]
      const job = last_jobs?.find(([own]) => own === type)
      if (tenant === undefined && job === undefined) this.#positions.delete(type)
      else {
        const [, priority, due, arrival] = job ?? [type, ...START.job]
        this.#positions.set(type, { tenant: tenant ?? START.tenant, job: [priority, due, arrival ?? START.job[2]] })
      }
    }
  }
}
