/**
 * The names that documents A and B give to what is measured, and what follows the prefix in a scrape: words parted by
 * `_`, counters end in `_total`, durations have the unit that their name says (X015). The type is a label, because it
 * may have hyphens (X031). Names that no document gives are ours.
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
  queueAgeMs: 'queue_age_ms',
  deadLetters: 'dead_letters',
  workerInstances: 'worker_instances',
  jobDuration: 'job_duration_seconds',
  jobAttempts: 'job_attempts',
  queueWaitTime: 'queue_wait_time_seconds',
  processingRate: 'processing_rate',
  successRate: 'success_rate',
  attemptFailureRate: 'attempt_failure_rate',
  latencyP50Ms: 'latency_p50_ms',
  latencyP95Ms: 'latency_p95_ms',
  latencyP99Ms: 'latency_p99_ms',
  leaseExpiryRate: 'lease_expiry_rate',
  leasesLost: 'leases_lost_total',
  leasesExpired: 'leases_expired_total',
  reaperPass: 'reaper_pass_duration_ms',
  jobsReplayed: 'jobs_replayed_total',
  jobsDiscarded: 'jobs_discarded_total',
  scheduleTicksSkipped: 'schedule_ticks_skipped_total',
  engineUp: 'engine_up',
})

/** Document E's names, and the age of what waits (X190). Without a prefix, and times in the unit of the name. */
export const REAPER_METRIC_NAMES = Object.freeze({
  'reaper.requeues': 'reaper_requeues_total',
  'reaper.failures': 'reaper_failures_total',
  'reaper.scan_duration_ms': 'reaper_scan_duration_ms',
  'reaper.queue_age_ms': 'reaper_queue_age_ms',
})

/** Seconds. A job may run for an hour; what is longer than the last is in +Inf (X068). */
export const SECONDS_BUCKETS: readonly number[] = Object.freeze([0.1, 0.5, 1, 5, 10, 30, 60, 300])

/** Starts that a job took until it ended. */
export const ATTEMPTS_BUCKETS: readonly number[] = Object.freeze([1, 2, 3, 5, 10, 20])

/** Milliseconds that one look for expired leases took. */
export const SCAN_BUCKETS: readonly number[] = Object.freeze([5, 25, 100, 500, 1_000, 5_000, 30_000])
