import type { TopicLag } from '../engine/open.ts'
import type { Severity } from '../events.ts'

/** How many records a group may be behind on a topic. */
export interface LagLimits {
  readonly warning: number
  readonly critical: number
}

/**
 * A lag is bad above a limit, not at it.
 *
 * @example
 * lagSeverity(501, { warning: 100, critical: 500 }) // 'critical'
 */
export function lagSeverity(lag: number, { warning, critical }: LagLimits): Extract<Severity, keyof LagLimits> | null {
  if (lag > critical) return 'critical'
  return lag > warning ? 'warning' : null
}

/** Topics of a broker, as health checks and pages read them. */
export interface ObservedTopics {
  lags(): Promise<readonly TopicLag[]>
  /** Null for a topic without limits. */
  limits(topic: string): LagLimits | null
  /** Unresolved dead letters by topic; default: unknown. */
  pending?(): Promise<readonly PendingLetters[]>
}

export interface PendingLetters {
  /** The dead-letter topic, `….dlq`. */
  readonly topic: string
  readonly count: number
}
