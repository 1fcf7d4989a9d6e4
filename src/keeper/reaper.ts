import type { Consumer, Engine } from '../engine/engine.ts'
import type { Lease, Settlement } from '../engine/outcome.ts'
import { refusedText, withoutText } from '../engine/outcome.ts'
import { MillraceError } from '../errors.ts'
import type { Events } from '../events.ts'
import type { Backoff } from '../job/backoff.ts'
import type { AnyJob } from '../job/definition.ts'
import type { Redactor } from '../job/error-record.ts'
import { keepOf } from '../job/keep.ts'
import { definitionFor } from '../job/named-jobs.ts'
import { decide } from '../job/policy.ts'
import type { Clock } from '../time/clock.ts'

export interface ReaperParts {
  readonly engine: Engine
  /** By type. Jobs of other types are recovered too, by their stored attempts and a default backoff. */
  readonly definitions: ReadonlyMap<string, AnyJob>
  readonly clock: Clock
  readonly random: () => number
  readonly redactor: Redactor
  readonly events: Events
  /** Under whose name the expired leases are taken over. */
  readonly worker: string
}

export interface Reaped {
  readonly retried: number
  readonly dead: number
}

/**
 * Recovers the jobs of dead holders: each expired lease is taken over under a fresh token and settled by the
 * same policy as any failed attempt, so a job that kills its worker is dead after its last attempt. Several reapers
 * may run at once; a reaper that dies here leaves leases that expire like any other.
 */
export async function reapOnce(
  parts: ReaperParts,
  batch = 500,
  signal: AbortSignal = new AbortController().signal,
): Promise<Reaped> {
  const startedAtMs = parts.clock.monotonicMs()
  const consumer = await parts.engine.consume({ types: 'every', worker: parts.worker })
  let retried = 0
  let dead = 0
  try {
    for (;;) {
      const leases = await consumer.claim({ max: batch, waitMs: 0, signal, from: 'expired' })
      for (const { kind } of await recover(parts, consumer, leases)) {
        if (kind === 'dead') dead += 1
        else retried += 1
      }
      // Fewer than asked for do not mean that no more are left: an engine may hand out less at once.
      if (leases.length === 0) break
    }
  } finally {
    await consumer.close()
  }
  parts.events.emit('reaper.pass', { retried, dead, durationMs: Math.round(parts.clock.monotonicMs() - startedAtMs) })
  return { retried, dead }
}

async function recover(parts: ReaperParts, consumer: Consumer, leases: readonly Lease[]) {
  if (leases.length === 0) return []
  const settlements = leases.map((lease): Settlement => ({ lease, outcome: verdict(parts, lease) }))
  const recovered = await settleAll(parts, consumer, settlements)
  for (const { lease, outcome } of recovered) {
    const { id, type, priority, attempts, tenant, runAtMs, createdAtMs, options } = lease.job
    const job = { id, type, priority, attempts, tenant, runAtMs, createdAtMs, options }
    parts.events.emit('lease.reaped', { job, attempt: lease.attempt, worker: parts.worker, outcome })
  }
  return recovered.map(({ outcome }) => outcome)
}

/** Those that took effect. What the store refuses for its text is settled without it, so that one job cannot stop a pass. */
async function settleAll(
  parts: ReaperParts,
  consumer: Consumer,
  settlements: readonly Settlement[],
): Promise<readonly Settlement[]> {
  const refusals = new Map((await consumer.settle(settlements)).map((refusal) => [refusal.lease.job.id, refusal]))
  const applied = settlements.filter(({ lease }) => !refusals.has(lease.job.id))
  const unstorable: Settlement[] = []
  for (const { lease, outcome } of settlements) {
    const refusal = refusals.get(lease.job.id)
    if (refusal?.reason !== 'unstorable') continue
    parts.events.emit('keeper.error', {
      keeper: parts.worker,
      during: 'reap',
      error: refusedText(lease, outcome, refusal.error),
    })
    unstorable.push({ lease, outcome: withoutText(outcome) })
  }
  if (unstorable.length === 0) return applied
  const again = new Set((await consumer.settle(unstorable)).map(({ lease }) => lease.job.id))
  return [...applied, ...unstorable.filter(({ lease }) => !again.has(lease.job.id))]
}

/** For a job of a type that this process does not define. */
const UNKNOWN_TYPE_BACKOFF: Backoff = {
  kind: 'exponential',
  base: '1s',
  max: '60s',
  firstExponent: 1,
  jitter: { add: '1s' },
}

type VerdictParts = Pick<ReaperParts, 'definitions' | 'random' | 'redactor'> & {
  /** For a job without one of its own, of a type without a definition. */
  readonly backoff?: Backoff
}

/** What becomes of a start whose holder is gone. */
export function verdict(
  { definitions, random, redactor, backoff: unknownBackoff = UNKNOWN_TYPE_BACKOFF }: VerdictParts,
  { job, attempt }: Lease,
) {
  const ofType = definitions.get(job.type)
  const definition = ofType && definitionFor(ofType, job.options?.name)
  const backoff = job.options?.backoff ?? definition?.backoff ?? unknownBackoff
  const error = new MillraceError(
    'ERR_LEASE_EXPIRED',
    `the lease of start ${attempt} expired: its worker died, was killed or stalled`,
  )
  const keepDead = keepOf(job.options?.keepDead, definition?.keepDead ?? null)
  return decide({ attempt, attempts: job.attempts, backoff, keepDead, error }, random, redactor)
}
