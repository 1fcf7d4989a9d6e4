import { LeaseLostError } from '../../src/errors.ts'
import type { Clock } from '../../src/time/clock.ts'
import type { ServiceResult } from './database.ts'

export interface LeaseRenewerParts {
  readonly id: string
  readonly leaseSec: number
  readonly heartbeatSec: number
  readonly clock: Clock
  beat(): Promise<ServiceResult<unknown>>
}

export interface LeaseRenewer {
  /** Aborts with a LeaseLostError when a heartbeat is refused or the lease has ended. Stop working then. */
  readonly signal: AbortSignal
  /** Stops the heartbeats. Call it before `finishJob`. */
  stop(): Promise<void>
}

/** At least three heartbeats fit into a lease, so that two may fail. */
export function beatEveryMs(leaseSec: number, heartbeatSec: number): number {
  return Math.min(heartbeatSec, leaseSec / 3) * 1_000
}

/**
 * A refused heartbeat ends the renewal at once. One that could not reach the database is repeated at the next beat, until
 * the lease has ended by this machine's clock: the job may then belong to another worker.
 */
export function keepLease({ id, leaseSec, heartbeatSec, clock, beat }: LeaseRenewerParts): LeaseRenewer {
  const lost = new AbortController()
  const stopping = new AbortController()
  const everyMs = beatEveryMs(leaseSec, heartbeatSec)
  /** Undefined without an answer in time, as from a connection that died silently. */
  const answerWithin = async (ms: number): Promise<ServiceResult<unknown> | undefined> => {
    const answered = new AbortController()
    const waiting = AbortSignal.any([answered.signal, stopping.signal])
    try {
      return (await Promise.race([beat(), clock.sleep(ms, waiting)])) ?? undefined
    } finally {
      answered.abort()
    }
  }
  const keep = async (): Promise<void> => {
    let safeUntilMs = clock.monotonicMs() + leaseSec * 1_000
    while (!stopping.signal.aborted) {
      await clock.sleep(Math.max(0, Math.min(everyMs, safeUntilMs - clock.monotonicMs())), stopping.signal)
      if (stopping.signal.aborted) return
      // Counted from before the heartbeat was sent: in the database the lease cannot end earlier.
      const sentAtMs = clock.monotonicMs()
      const answer = await answerWithin(safeUntilMs - sentAtMs)
      if (answer?.ok === true) safeUntilMs = sentAtMs + leaseSec * 1_000
      else if (answer?.code !== undefined && answer.code !== 'database_unavailable') break
      else if (clock.monotonicMs() >= safeUntilMs) break
    }
    if (!stopping.signal.aborted) lost.abort(new LeaseLostError(id, 'expired'))
  }
  const done = keep()
  return {
    signal: lost.signal,
    stop: async () => {
      stopping.abort()
      await done
    },
  }
}
