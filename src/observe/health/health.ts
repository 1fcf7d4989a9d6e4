/** Document A's health words and bands: pure, so that a check, a page and a test agree on them. */

export type HealthWord = 'healthy' | 'degraded' | 'unhealthy'

/** What one check found. */
export interface HealthStatus {
  readonly status: HealthWord
  /** Milliseconds. */
  readonly latency?: number
  readonly error?: string
  readonly details?: {
    readonly count?: number
    /** For how many milliseconds the job that has been due longest waits; null when none waits. */
    readonly oldestWaiting?: number | null
  }
}

export interface HealthChecks {
  /** Whether the engine could serve a claim now; `redis` in document A's form. */
  readonly engine: HealthStatus
  readonly workers: HealthStatus
  readonly queues: HealthStatus
  readonly deadLetters: HealthStatus
}

export interface HealthDetails {
  readonly activeWorkers: number
  readonly totalQueues: number
  readonly oldestWaitingJob: number | null
  readonly deadLetterCount: number
}

export interface Health {
  /** The worst of the checks. */
  readonly status: HealthWord
  readonly checks: HealthChecks
  /** What a failed check could not find out is 0, or null. */
  readonly details: HealthDetails
}

const LATENCY_MS_MAX = 100
const WAITING_MS_MAX = 3_600_000
const WORST_FIRST = ['unhealthy', 'degraded', 'healthy'] as const

/** The worst wins; nothing to complain about is healthy. */
export function aggregateStatus(statuses: readonly HealthStatus[]): HealthWord {
  return WORST_FIRST.find((word) => statuses.some(({ status }) => status === word)) ?? 'healthy'
}

export function pingHealth(latency: number): HealthStatus {
  return { status: latency < LATENCY_MS_MAX ? 'healthy' : 'degraded', latency }
}

export function workersHealth(count: number, minWorkers: number): HealthStatus {
  const enough = count >= minWorkers ? 'healthy' : 'degraded'
  return { status: count === 0 && minWorkers > 0 ? 'unhealthy' : enough, details: { count } }
}

/** X070: a job that waits for more than an hour is a sign that nobody comes for it. */
export function queuesHealth(count: number, oldestWaiting: number | null): HealthStatus {
  const isStale = oldestWaiting !== null && oldestWaiting > WAITING_MS_MAX
  return { status: isStale ? 'degraded' : 'healthy', details: { count, oldestWaiting } }
}

export function deadLettersHealth(count: number, threshold: number): HealthStatus {
  if (count === 0) return { status: 'healthy', details: { count } }
  return { status: count < threshold ? 'degraded' : 'unhealthy', details: { count } }
}

export function healthOf(checks: HealthChecks): Health {
  const { engine, workers, queues, deadLetters } = checks
  return {
    status: aggregateStatus([engine, workers, queues, deadLetters]),
    checks,
    details: {
      activeWorkers: workers.details?.count ?? 0,
      totalQueues: queues.details?.count ?? 0,
      oldestWaitingJob: queues.details?.oldestWaiting ?? null,
      deadLetterCount: deadLetters.details?.count ?? 0,
    },
  }
}
