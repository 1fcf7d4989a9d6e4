import type { Lease, Lost } from '../../engine/outcome.ts'
import type { Ended } from '../../job/states.ts'
import { lostReason } from '../sql/outcomes.ts'
import { type Accepted, nameOf, nameOfLease } from './complete.ts'
import type { Database } from './database.ts'
import { after, held, NOW, owned, rowsFrom } from './fragments.ts'
import type { Names } from './names.ts'
import { fenceOf } from './rows.ts'

/** Never waits: the caller tries a row again that is being settled right now. */
export const RENEW = ({ jobs }: Names): string => `
WITH held AS MATERIALIZED (
  SELECT given.id, given.token FROM ${jobs} AS job
  JOIN ${rowsFrom('$2::text[]', '$3::text[]')} AS given (id, token) ON ${held('job', 'given')}
  FOR NO KEY UPDATE OF job SKIP LOCKED)
UPDATE ${jobs} AS job SET lease_expires_at = ${after('$4::float8')}, last_heartbeat_at = ${NOW}, updated_at = ${NOW}
FROM held WHERE job.id::text = held.id
RETURNING held.id, held.token`

/** The same for one lease; it waits for the row. */
export const RENEW_ONE = ({ jobs }: Names): string => `
UPDATE ${jobs} AS job SET lease_expires_at = ${after('$4::float8')}, last_heartbeat_at = ${NOW}, updated_at = ${NOW}
FROM (SELECT $2::text AS id, $3::text AS token) AS given WHERE ${held('job', 'given')}
RETURNING job.id::text AS id`

export const REPORT = ({ jobs }: Names): string => `
UPDATE ${jobs} AS job SET progress = $4::json, updated_at = ${NOW}
FROM (SELECT $2::text AS id, $3::text AS token) AS given WHERE ${held('job', 'given')}
RETURNING job.id::text AS id`

/** Whether each lease still holds, and why not. */
export const LOOK_AT_LEASES = ({ jobs }: Names): string => `
SELECT given.id, given.token, job.ended,
  coalesce(${owned('job', 'given')} AND job.status = 'processing', false) AS owned,
  coalesce(job.lease_expires_at > ${NOW}, false) AS alive
FROM ${rowsFrom('$2::text[]', '$3::text[]')} AS given (id, token) LEFT JOIN ${jobs} AS job ON job.id::text = given.id`

/** Extends all held leases in one statement. Only those not extended are tried one by one. */
export async function renewLeases(
  database: Database,
  leases: readonly Lease[],
  leaseMs: number,
): Promise<readonly Lost[]> {
  const renewed = await database.rows<Accepted>(RENEW, ...fences(leases), leaseMs)
  if (renewed.length === leases.length) return []
  const held = new Set(renewed.map(nameOf))
  const lost: Lost[] = []
  for (const lease of leases) {
    if (held.has(nameOfLease(lease))) continue
    const again = await database.rows(RENEW_ONE, lease.job.id, fenceOf(lease).token, leaseMs)
    if (again.length === 0) lost.push(...(await findLost(database, [lease])))
  }
  return lost
}

function fences(leases: readonly Lease[]): readonly [ids: readonly string[], tokens: readonly string[]] {
  return [leases.map((lease) => lease.job.id), leases.map((lease) => fenceOf(lease).token)]
}

export async function reportProgress(database: Database, lease: Lease, progress: string): Promise<boolean> {
  return (await database.rows(REPORT, lease.job.id, fenceOf(lease).token, progress)).length === 1
}

interface LookedAt {
  readonly id: string
  readonly token: string
  readonly ended: Ended | null
  readonly owned: boolean
  readonly alive: boolean
}

/** Why each of these refused leases no longer holds. */
export async function findLost(database: Database, leases: readonly Lease[]): Promise<readonly Lost[]> {
  if (leases.length === 0) return []
  const rows = await database.rows<LookedAt>(LOOK_AT_LEASES, ...fences(leases))
  return leases.map((lease) => {
    const row = rows.find(({ id, token }) => id === lease.job.id && token === fenceOf(lease).token)
    return { lease, reason: lostReason(row?.ended ?? null) }
  })
}

/** The held leases that were taken away. An expired lease that is not reaped yet does not count. */
export async function findTaken(database: Database, leases: readonly Lease[]): Promise<readonly Lost[]> {
  const rows = await database.rows<LookedAt>(LOOK_AT_LEASES, ...fences(leases))
  return leases.flatMap((lease) => {
    const row = rows.find(({ id, token }) => id === lease.job.id && token === fenceOf(lease).token)
    return row?.owned === true ? [] : [{ lease, reason: lostReason(row?.ended ?? null) }]
  })
}
