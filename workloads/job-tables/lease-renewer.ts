import { LeaseLostError } from '../../src/errors.ts'
import type { Clock } from '../../src/time/clock.ts'
import type { ServiceResult } from './database.ts'

export interface LeaseKeeperParts {
  readonly id: string
  readonly leaseSec: number
  readonly heartbeatSec: number
  readonly clock: Clock
  beat(): Promise<ServiceResult<unknown>>
}

/** Keeps one running job's lease alive. */
export interface LeaseKeeper {
  /** Aborts with a LeaseLostError when a heartbeat is refused or the lease must have ended: stop working then. */
  readonly signal: AbortSignal
  /** Ends the heartbeats. Call it before `finishJob`. */
  stop(): Promise<void>
}

/** X006: at least three beats fit into a lease, so that two may fail. */
export function beatEveryMs(leaseSec: number, heartbeatSec: number): number {
  return Math.min(heartbeatSec, leaseSec / 3) * 1_000
}

/**
 * E03, E51. A refused heartbeat ends it at once. One that could not reach the database is tried again at the next beat,
 * until the lease has ended by this machine's own reckoning: then nobody can say that the job is still ours.
 */
export function keepLease({ id, leaseSec, heartbeatSec, clock, beat }: LeaseKeeperParts): LeaseKeeper {
  const lost = new AbortController()
  const stopping = new AbortController()
  const everyMs = beatEveryMs(leaseSec, heartbeatSec)
  /** Undefined when no answer came in time, as from a connection that died in silence. */
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
      // The lease is counted from before the beat was sent: in the database it cannot have ended earlier.
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
