/** The health conditions of one escrow worker: pure functions of what it reported and the time. */
import type { Beat } from '../../src/engine/presence.ts'
import type { Severity } from '../../src/events.ts'
import { type LagLimits, lagSeverity } from '../../src/observe/lag.ts'
import { isMissing, isQuiet, isStopOverdue, type PresentWorker } from '../../src/observe/workers.ts'

/** A worker that is running, or should be. */
export interface WatchedWorker extends PresentWorker {
  /** Partitions or keys that it holds for a retry: such a worker is waiting, not stuck. */
  readonly retrying: number
}

export type ConditionName =
  | 'heartbeat-missing'
  | 'no-message'
  | 'consumer-lag'
  | 'shutdown-overdue'
  | 'idle'
  | 'retrying'

export interface Condition {
  readonly condition: ConditionName
  /** Null for a state that needs no attention. */
  readonly severity: Severity | null
  readonly action: string
}

/**
 * What applies to a worker now. Nothing else is known about a missing worker.
 *
 * @example
 * for (const { condition, severity, action } of conditionsOf(worker, Date.now())) console.log(severity, condition, action)
 */
export function conditionsOf(
  worker: WatchedWorker,
  nowMs: number,
  limits: LagLimits | null = null,
): readonly Condition[] {
  const { beat } = worker
  if (isMissing(worker, nowMs)) {
    return [condition('heartbeat-missing', 'critical', 'alert the operator and find out why it has to be restarted')]
  }
  if (beat === null) return []
  const severity = limits === null || beat.lag === null ? null : lagSeverity(beat.lag, limits)
  const lag = severity === null ? [] : [condition('consumer-lag', severity, 'add workers, or find out what slows them')]
  if (isStopOverdue(beat, nowMs)) {
    return [...lag, condition('shutdown-overdue', 'warning', 'it may have to be stopped by force')]
  }
  return beat.status === 'RUNNING' && isQuiet(worker, nowMs) ? [...lag, quietCondition(worker, beat)] : lag
}

function condition(name: ConditionName, severity: Severity | null, action: string): Condition {
  return { condition: name, severity, action }
}

/** A quiet worker with no lag is idle. With an unknown lag it may be stuck. */
function quietCondition({ retrying }: WatchedWorker, { lag }: Beat): Condition {
  if (retrying > 0) return condition('retrying', null, 'it waits for its next attempt')
  if (lag === 0) return condition('idle', null, 'nothing is waiting for it')
  return condition(
    'no-message',
    'warning',
    lag === null ? 'check its lag; it may be idle' : 'records wait, but it handles none',
  )
}
