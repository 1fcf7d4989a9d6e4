/**
 * Metric names without the prefix: words separated by `_`, counters end in `_total`, durations are seconds and end so. The job
 * type is a label, because it may contain hyphens.
 */
export const METRIC_NAMES = Object.freeze({
  jobsStarted: 'jobs_started_total',
  jobsCompleted: 'jobs_completed_total',
  jobsFailed: 'jobs_failed_total',
  jobsRetried: 'jobs_retried_total',
  jobsDead: 'jobs_dead_total',
  jobsTotal: 'jobs_total',
  activeJobs: 'jobs_active',
  waitingJobs: 'jobs_waiting',
  delayedJobs: 'jobs_delayed',
  queueDepth: 'queue_depth',
  queueAge: 'queue_age_seconds',
  deadLetters: 'dead_letters',
  workerInstances: 'worker_instances',
  jobDuration: 'job_duration_seconds',
  jobAttempts: 'job_attempts',
  queueWaitTime: 'queue_wait_time_seconds',
  processingRate: 'processing_rate',
  successRate: 'success_rate',
  attemptFailureRate: 'attempt_failure_rate',
  latencyP50Ms: 'latency_p50_seconds',
  latencyP95Ms: 'latency_p95_seconds',
  latencyP99Ms: 'latency_p99_seconds',
  leaseExpiryRate: 'lease_expiry_rate',
  leasesLost: 'leases_lost_total',
  leasesExpired: 'leases_expired_total',
  reaperPass: 'reaper_pass_duration_seconds',
  jobsReplayed: 'jobs_replayed_total',
  jobsDiscarded: 'jobs_discarded_total',
  scheduleTicksSkipped: 'schedule_ticks_skipped_total',
  engineUp: 'engine_up',
})

/** Seconds. Longer jobs fall into +Inf. */
export const SECONDS_BUCKETS: readonly number[] = Object.freeze([0.1, 0.5, 1, 5, 10, 30, 60, 300])

/** Attempts of a finished job. */
export const ATTEMPTS_BUCKETS: readonly number[] = Object.freeze([1, 2, 3, 5, 10, 20])

/** Seconds of one reaper pass. */
export const PASS_BUCKETS: readonly number[] = Object.freeze([0.005, 0.025, 0.1, 0.5, 1, 5, 30])

const PREFIX = /^[a-zA-Z_:][a-zA-Z0-9_:]*$/

/** What Prometheus allows at the beginning of a name. */
export function isMetricsPrefix(prefix: string): boolean {
  return PREFIX.test(prefix)
}
