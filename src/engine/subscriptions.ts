import { UnsupportedError } from '../errors.ts'
import type { SubscribedType, Subscription } from './engine.ts'

/** The types whose ready jobs a consumer claims. A reaper subscribes to every type and claims only expired jobs. */
export function readyTypes({ types }: Subscription, engine: string): readonly SubscribedType[] {
  if (types !== 'every') return types
  throw new UnsupportedError({ engine, limit: `claims ready jobs by type; a reaper may claim only from 'expired'` })
}

/** How long a reaper of every type holds an expired job: ample for one settle, and short if the reaper dies too. */
export const REAPER_LEASE_MS = 30_000

/** How long a consumer holds the expired jobs that it claims. */
export function expiredLeaseMs({ types }: Subscription): number {
  return types === 'every' ? REAPER_LEASE_MS : Math.max(...types.map(({ leaseMs }) => leaseMs))
}
