/** Document D's health conditions of one worker. Pure: what holds follows from what it said and what the hour is. */
import type { Beat } from '../../engine/presence.ts'
import { type LagLimits, lagSeverity, type Severity } from './lag.ts'

export const MISSING_MS = 60_000
export const QUIET_MS = 300_000
export const STOPPING_MS = 120_000

/** A worker that lives, or that should. */
export interface WatchedWorker {
  readonly worker: string
  readonly instance: string
  readonly seenAtMs: number
  /** What it last said; null when that has run out. */
  readonly beat: Beat | null
  /** When the watch first met it: one that has never handled anything has been quiet since then. */
  readonly knownSinceMs: number
  /** Partitions or keys that it holds for a retry: it is not stuck, it waits (X152). */
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
  /** Null for a state that needs nobody. */
  readonly severity: Severity | null
  readonly action: string
}

/**
 * What is to be said of a worker. Of one that is missing nothing else is known.
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
    return [condition('heartbeat-missing', 'CRITICAL', 'alert the operator and find out why it has to be restarted')]
  }
  if (beat === null) return []
  const severity = limits === null || beat.lag === null ? null : lagSeverity(beat.lag, limits)
  const lag = severity === null ? [] : [condition('consumer-lag', severity, 'add workers, or find out what slows them')]
  if (isStopTooLong(beat, nowMs)) {
    return [...lag, condition('shutdown-overdue', 'WARNING', 'it may have to be stopped by force')]
  }
  return beat.status === 'RUNNING' && isQuiet(worker, nowMs) ? [...lag, quietly(worker, beat)] : lag
}

function condition(name: ConditionName, severity: Severity | null, action: string): Condition {
  return { condition: name, severity, action }
}

/** X158: a worker with nothing to do is idle. One whose lag nobody knows may be stuck. */
function quietly({ retrying }: WatchedWorker, { lag }: Beat): Condition {
  if (retrying > 0) return condition('retrying', null, 'it waits for its next try')
  if (lag === 0) return condition('idle', null, 'nothing is waiting for it')
  return condition(
    'no-message',
    'WARNING',
    lag === null ? 'look at its lag; it may be idle' : 'records wait and it handles none',
  )
}

export function isMissing({ seenAtMs }: WatchedWorker, nowMs: number): boolean {
  return nowMs - seenAtMs > MISSING_MS
}

export function isQuiet({ beat, knownSinceMs }: WatchedWorker, nowMs: number): boolean {
  return nowMs - (beat?.lastJobAtMs ?? knownSinceMs) > QUIET_MS
}

export function isStopTooLong({ stoppingSinceMs }: Beat, nowMs: number): boolean {
  return stoppingSinceMs !== null && nowMs - stoppingSinceMs > STOPPING_MS
}
