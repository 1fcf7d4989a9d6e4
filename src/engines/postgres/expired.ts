import type { Subscription } from '../../engine/engine.ts'
import type { Lease } from '../../engine/outcome.ts'
import { expiredLeaseMs } from '../../engine/subscriptions.ts'
import type { Database } from './database.ts'
import { after, event, jobColumns, ms, NOW } from './fragments.ts'
import { leftMs, type NextRow } from './look.ts'
import type { Names } from './names.ts'
import { type JobRow, toLease } from './rows.ts'

/** A row that another program marked as processing without a lease expires after $6 milliseconds without a heartbeat. */
function expired(noLease: boolean): string {
  return noLease
    ? `lease_expires_at IS NULL AND coalesce(last_heartbeat_at, updated_at, created_at) <= ${NOW} - $6 * interval '1 millisecond'`
    : `lease_expires_at <= ${NOW} AND $6::float8 IS NOT NULL`
}

function claimExpiredSql({ jobs, events, eventIdType }: Names, noLease: boolean): string {
  const worker = 'previous_owner'
  return `
WITH taken AS MATERIALIZED (
  SELECT id, locked_by, started_at FROM ${jobs}
  WHERE status = 'processing' AND type IS NOT NULL AND ${expired(noLease)} AND ($3::text[] IS NULL OR type = ANY ($3::text[]))
  ORDER BY lease_expires_at LIMIT $2 FOR UPDATE SKIP LOCKED),
leased AS (
  UPDATE ${jobs} AS job SET locked_by = $4, lease_token = $5, lease_expires_at = ${after('$7::float8')}, updated_at = ${NOW}
  FROM taken WHERE job.id = taken.id
  RETURNING ${jobColumns('job')}, taken.locked_by AS ${worker}, taken.started_at),
recorded AS (
  INSERT INTO ${events} (job_id, data)
  SELECT id::text::${eventIdType}, ${event({ type: `'expired'`, attempt: 'attempt_count', worker }, `jsonb_build_object('startedAtMs', ${ms('started_at')})`)}
  FROM leased)
SELECT * FROM leased`
}

/** The start was counted when it was claimed. The reaper's lease counts nothing. */
export const CLAIM_EXPIRED = (names: Names): string => claimExpiredSql(names, false)

export const CLAIM_SILENT = (names: Names): string => claimExpiredSql(names, true)

export const NEXT_EXPIRY = ({ jobs }: Names): string => `
SELECT ${ms('min(lease_expires_at)')} AS next_ms, ${ms(NOW)} AS now_ms FROM ${jobs}
WHERE status = 'processing' AND type IS NOT NULL AND ($2::text[] IS NULL OR type = ANY ($2::text[]))`

export async function nextExpiryInMs(database: Database, subscription: Subscription): Promise<number | null> {
  return leftMs(await database.rows<NextRow>(NEXT_EXPIRY, typesOf(subscription)))
}

function typesOf({ types }: Subscription): readonly string[] | null {
  return types === 'every' ? null : types.map((type) => type.type)
}

/** How long a row that another program marked as processing, without a lease, may go without a heartbeat. */
export const SILENCE_MS = 300_000

/** Hands expired jobs to the reaper under a fresh token. */
export async function claimExpired(
  database: Database,
  subscription: Subscription,
  { max, token }: { readonly max: number; readonly token: string },
): Promise<readonly Lease[]> {
  const { worker } = subscription
  const leaseMs = expiredLeaseMs(subscription)
  const found: JobRow[] = []
  for (const statement of [CLAIM_EXPIRED, CLAIM_SILENT]) {
    const left = max - found.length
    if (left <= 0) break
    const rows = await database.rows<JobRow>(statement, left, typesOf(subscription), worker, token, SILENCE_MS, leaseMs)
    found.push(...rows)
  }
  return found.map((row) => toLease(row, token))
}
