import { LOST_CLAIM_REASON } from '../../engine/lost-claims.ts'
import type { PostgresCore } from './core.ts'
import { jobColumns, NOW } from './fragments.ts'
import type { Names } from './names.ts'
import { type JobRow, toLease } from './rows.ts'
import { settleLeases } from './settle.ts'

/** The jobs leased under the tokens of claims whose answer was lost. */
export const FIND_CLAIMED = ({ jobs }: Names): string => `
SELECT ${jobColumns('job')}, job.lease_token AS token FROM ${jobs} AS job
WHERE job.status = 'processing' AND job.lease_token = ANY ($2::text[]) AND ${NOW} IS NOT NULL
ORDER BY job.arrival`

/** A job claimed by a reaper expires again, so that the next pass finds it. */
export const EXPIRE_AGAIN = ({ jobs }: Names): string => `
UPDATE ${jobs} AS job SET lease_expires_at = ${NOW}, updated_at = ${NOW}
WHERE job.status = 'processing' AND job.lease_token = ANY ($2::text[])
RETURNING job.lease_token AS token`

/** A claim whose answer was lost. */
export interface LostClaim {
  readonly token: string
  readonly worker: string
  readonly from: 'ready' | 'expired'
}

/**
 * Undoes the claims that took effect and returns them. Jobs that were ready are ready again, and the start does not count.
 * Jobs that a reaper claimed are expired again.
 */
export async function takeBackClaims(core: PostgresCore, claims: readonly LostClaim[]): Promise<readonly LostClaim[]> {
  const tokensOf = (from: LostClaim['from']) => claims.filter((claim) => claim.from === from).map(({ token }) => token)
  const [ready, reaped] = [tokensOf('ready'), tokensOf('expired')]
  const found = [
    ...(ready.length === 0 ? [] : await release(core, claims, ready)),
    ...(reaped.length === 0 ? [] : await core.database.rows<{ token: string }>(EXPIRE_AGAIN, reaped)),
  ]
  const tokens = new Set(found.map(({ token }) => token))
  return claims.filter(({ token }) => tokens.has(token))
}

async function release(core: PostgresCore, claims: readonly LostClaim[], tokens: readonly string[]) {
  const rows = await core.database.rows<JobRow & { readonly token: string }>(FIND_CLAIMED, tokens)
  if (rows.length === 0) return rows
  const outcome = { kind: 'release', delayMs: 0, reason: LOST_CLAIM_REASON } as const
  const released = rows.map((row) => ({
    lease: toLease(row, row.token),
    outcome,
    worker: claims.find(({ token }) => token === row.token)?.worker ?? '',
  }))
  await settleLeases(core.database, released, core.removedViews)
  core.added({ mayPrecede: true })
  return rows
}
