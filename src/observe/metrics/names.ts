/**
 * The names that document A gives to what is measured, and what follows the prefix in a scrape: words parted by `_`,
 * counters end in `_total`, durations are seconds (X015). The type is a label, because it may have hyphens (X031).
 */
export const METRIC_NAMES = Object.freeze({
  jobsStarted: 'jobs_started_total',
  jobsCompleted: 'jobs_completed_total',
  jobsFailed: 'jobs_failed_total',
  jobsRetried: 'jobs_retried_total',
  jobsTotal: 'jobs_total',
  activeJobs: 'jobs_active',
  waitingJobs: 'jobs_waiting',
  delayedJobs: 'jobs_delayed',
  queueDepth: 'queue_depth',
  deadLetters: 'dead_letters',
  workerInstances: 'worker_instances',
  jobDuration: 'job_duration_seconds',
  jobAttempts: 'job_attempts',
  queueWaitTime: 'queue_wait_time_seconds',
  engineUp: 'engine_up',
})

/** Seconds. A job may run for an hour; what is longer than the last is in +Inf (X068). */
export const SECONDS_BUCKETS: readonly number[] = Object.freeze([0.1, 0.5, 1, 5, 10, 30, 60, 300])

/** Starts that a job took until it ended. */
export const ATTEMPTS_BUCKETS: readonly number[] = Object.freeze([1, 2, 3, 5, 10, 20])
