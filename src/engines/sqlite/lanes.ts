import type { ClaimRequest, SubscribedType } from '../../engine/engine.ts'
import type { SharedSlots } from '../../job/slots.ts'
import type { Connection } from './database.ts'
import { startsLeft } from './rate-limits.ts'
import type { TenantJobs } from './tenant-slots.ts'

/** From the rows that hold a lease, so a slot is free exactly when its job no longer runs. An expired lease counts too. */
export const COUNT_RUNNING = `
SELECT count(*) AS running FROM job_queue INDEXED BY idx_job_queue_type WHERE type = :type AND status = 'in_progress'`

export type Bounds = Pick<ClaimRequest, 'max' | 'perType'>

/** What one claim may take of a type. */
export interface Lane {
  readonly type: SubscribedType
  /** How many of the type may be claimed now. */
  readonly max: number
  /** When the rate limit allows the next start; null while it allows one now. */
  readonly freeAtMs: number | null
  /** Where each tenant has slots of its own. */
  readonly tenants: { readonly jobs: TenantJobs; readonly slots: SharedSlots } | null
}

export interface Opening {
  readonly types: readonly SubscribedType[]
  readonly bounds: Bounds
  tenantJobs(type: string): TenantJobs
}

export function openLanes(connection: Connection, opening: Opening, nowMs: number): readonly Lane[] {
  const { types, bounds } = opening
  return types.map((type) => {
    const { limit, slots } = type
    const max = Math.min(bounds.max, bounds.perType?.[type.type] ?? bounds.max)
    if (limit === undefined && slots === undefined) return { type, max, freeAtMs: null, tenants: null }
    const { left, freeAtMs } =
      limit === undefined ? { left: max, freeAtMs: null } : startsLeft(connection, type.type, limit, nowMs)
    const allowed = Math.min(max, left)
    if (slots === undefined) return { type, max: allowed, freeAtMs, tenants: null }
    if (slots.by === 'tenant') {
      return { type, max: allowed, freeAtMs, tenants: { jobs: opening.tenantJobs(type.type), slots } }
    }
    const { running } = connection.prepare(COUNT_RUNNING).get({ type: type.type }) as { running: number }
    return { type, max: Math.min(allowed, Math.max(0, slots.max - running)), freeAtMs, tenants: null }
  })
}
