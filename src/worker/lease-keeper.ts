import type { LostReason } from '../engine/outcome.ts'
import { type Clock, systemClock } from '../time/clock.ts'
import { type Renewable, Renewals, type RenewalsParts } from './renewals.ts'
import type { KeptLease } from './shared-leases.ts'
import { startRenewalThread } from './thread-keeper.ts'

/** Keeps what the worker holds from expiring. Every call takes a whole batch. */
export interface LeaseKeeper {
  /** Called before the first handler of the batch: one of them may block this thread. */
  hold(leases: readonly KeptLease[]): void
  drop(leases: readonly KeptLease[]): void
  /** Resolves when leases are kept even if a handler blocks this thread, or when that will never be so. */
  readonly ready: Promise<void>
  close(): Promise<void>
}

export interface KeeperParts {
  readonly clock: Clock
  readonly consumer: RenewalsParts['consumer']
  readonly worker: string
  readonly threadUrl: string | null
  /** Everything held now, but for what has been told as lost. */
  held(): Iterable<KeptLease>
  onLost(handle: number, reason: LostReason): void
  onError(during: string, error: unknown): void
}

/** A thread can share the system's clock, never a test's: with any other clock renewal stays on this loop. */
export function keepLeases(parts: KeeperParts): LeaseKeeper {
  if (parts.threadUrl === null || parts.clock !== systemClock) return keepOnThisLoop(parts)
  return startRenewalThread(parts, parts.threadUrl, () => keepOnThisLoop(parts))
}

/** A lease without an end is watched by the engine itself. */
function expires({ lease }: Renewable): boolean {
  return lease.expiresAtMs !== null
}

function keepOnThisLoop({ clock, consumer, held, onLost, onError }: KeeperParts): LeaseKeeper {
  const renewals = new Renewals({
    clock,
    consumer,
    held: () => [...held()].filter(expires),
    onLost,
    onError: (error) => onError('renew', error),
  })
  return {
    hold: (leases) => {
      for (const { lease, leaseMs } of leases) if (lease.expiresAtMs !== null) renewals.watch(leaseMs)
    },
    drop: () => {},
    ready: Promise.resolve(),
    close: async () => renewals.close(),
  }
}
