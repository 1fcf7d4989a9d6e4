import { inspect } from 'node:util'
import { isError } from '../errors.ts'
import type { Events, MillEvents } from '../events.ts'
import type { Log } from '../job/definition.ts'
import { errorText } from '../job/error-record.ts'
import { refuseUnknown } from '../job/known-options.ts'
import { systemClock } from '../time/clock.ts'
import { toIso } from '../time/iso.ts'

const nothing = (): void => {}

export const silentLog: Log = Object.freeze({ debug: nothing, info: nothing, warn: nothing, error: nothing })

const LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const

export interface LogOptions {
  /** The least severe level that is written. Default: `info`. */
  readonly level?: (typeof LEVELS)[number]
  /** Where lines go. Default: standard output. */
  readonly destination?: { write(line: string): unknown }
  /** Added to every line that has no `name` field. */
  readonly name?: string
}

/** A log of JSON lines: `level` in words, `time` in ISO-8601, `msg`, and the fields. */
export function createLog(options: LogOptions = {}): Log {
  refuseUnknown(options, { level: true, destination: true, name: true }, 'createLog')
  const { level = 'info', destination = standardOutput(), name } = options
  const lowest = LEVELS.indexOf(level)
  const write =
    (severity: keyof Log): Log[keyof Log] =>
    (msg, fields) => {
      if (LEVELS.indexOf(severity) < lowest) return
      const head = { level: severity, time: toIso(systemClock.nowMs()), ...(name === undefined ? {} : { name }) }
      destination.write(`${jsonLine({ ...head, ...fields, msg })}\n`)
    }
  return { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') }
}

let output: NodeJS.WriteStream | null = null

/** Standard output whose reader may go away (`| head`): the program then goes on without its log. */
function standardOutput(): NodeJS.WriteStream {
  output ??= process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error
  })
  return output
}

/** A field that JSON cannot hold is written as text: a log line must never fail the job that writes it. */
function jsonLine(fields: Readonly<Record<string, unknown>>): string {
  try {
    return JSON.stringify(fields, (_, value: unknown) => {
      if (typeof value === 'bigint') return String(value)
      return isError(value) ? { type: value.name, message: value.message, stack: value.stack } : value
    })
  } catch {
    const texts = Object.entries(fields).map(([key, value]) => [
      key,
      typeof value === 'string' ? value : inspect(value),
    ])
    return JSON.stringify(Object.fromEntries(texts))
  }
}

type JobMoment = Pick<MillEvents['job.claimed'], 'job' | 'attempt' | 'worker'>

/** The fields of every line about a job. `attempts` counts its starts so far. */
function about({ job, attempt, worker }: JobMoment) {
  const name = job.options?.name
  return {
    job_id: job.id,
    job_type: job.type,
    ...(name !== undefined && { job_name: name }),
    worker_id: worker,
    attempts: attempt,
  }
}

/**
 * Writes a line for each event. Lines carry ids and sizes, never payloads or results; progress only at
 * debug, as the handler reported it. Returns the detacher.
 */
export function attachLog(events: Events, log: Log): () => void {
  const detachers = [
    ...logJobs(events, log),
    ...logLeases(events, log),
    ...logWorker(events, log),
    ...logKeeper(events, log),
    events.on('clock.stepped', ({ stepMs }) =>
      log.warn(`The clock of this machine was set ${stepMs < 0 ? 'back' : 'forward'}`, { step_ms: Math.round(stepMs) }),
    ),
  ]
  return () => {
    for (const detach of detachers) detach()
  }
}

function logJobs(events: Events, log: Log): readonly (() => void)[] {
  return [
    events.on('job.enqueued', ({ id, type, status, bytes }) =>
      log.debug('Job enqueued', { job_id: id, job_type: type, status, bytes }),
    ),
    events.on('job.claimed', (event) => log.info('Job claimed', { ...about(event), priority: event.job.priority })),
    events.on('job.started', (event) => log.info('Job started', about(event))),
    events.on('job.progress', (event) => log.debug('Job progress', { ...about(event), progress: event.progress })),
    events.on('job.settled', (event) => logSettled(log, event)),
    events.on('job.cancelled', ({ id, who, reason }) => log.info('Job cancelled', { job_id: id, who, reason })),
    events.on('hook.error', ({ job, hook, error }) =>
      log.error('A hook failed', { job_id: job.id, job_type: job.type, hook, error: errorText(error) }),
    ),
  ]
}

function logSettled(log: Log, event: MillEvents['job.settled']): void {
  const { outcome, durationMs } = event
  const fields = { ...about(event), duration_ms: durationMs }
  switch (outcome.kind) {
    case 'complete':
      log.info('Job completed', fields)
      return
    case 'release':
      log.info('Job released', { ...fields, delay_ms: outcome.delayMs, reason: outcome.reason })
      return
    case 'retry':
    case 'dead':
      log.error('Job failed', { ...fields, error: outcome.error.message })
      logFailed(log, event)
      return
    default:
      outcome satisfies never
  }
}

/** What follows a failed or lost attempt: another one, or none. */
function logFailed(log: Log, event: MillEvents['lease.reaped']): void {
  const { outcome, job } = event
  if (outcome.kind === 'retry') {
    const fields = {
      ...about(event),
      attempts_max: job.attempts,
      delay_ms: outcome.delayMs,
      error: outcome.error.message,
    }
    log.warn(`Job retried in ${outcome.delayMs} ms (attempt ${event.attempt} of ${job.attempts})`, fields)
  }
  if (outcome.kind === 'dead') log.error('Job moved to dead_letter', { ...about(event), error: outcome.error.message })
}

function logLeases(events: Events, log: Log): readonly (() => void)[] {
  return [
    events.on('lease.lost', (event) => log.warn('Lease lost', { ...about(event), reason: event.reason })),
    events.on('lease.reaped', (event) => logFailed(log, event)),
    events.on('reaper.pass', ({ retried, dead, durationMs }) => {
      const count = retried + dead
      if (count === 0) return
      log.warn('Expired leases recovered', { count, retried, dead, duration_ms: durationMs })
    }),
    events.on('retention.pass', ({ removed, evicted, interrupted, durationMs }) => {
      const count = removed + evicted
      if (count === 0) return
      log.info('Finished jobs removed', { count, evicted, interrupted, duration_ms: durationMs })
    }),
  ]
}

function logWorker(events: Events, log: Log): readonly (() => void)[] {
  return [
    events.on('worker.started', ({ worker, types, concurrency }) =>
      log.info('Worker starting', { worker_id: worker, types, concurrency }),
    ),
    events.on('worker.stopping', ({ worker, running, cause }) => {
      if (cause.startsWith('SIG')) log.info('Signal received', { worker_id: worker, signal: cause })
      else log.info('Worker stopping', { worker_id: worker, cause })
      for (const id of running) log.info('Waiting for job', { worker_id: worker, job_id: id })
    }),
    events.on('worker.paused', ({ worker, types }) => {
      log.info(types.length === 0 ? 'No type is paused' : 'Types are paused', { worker_id: worker, types })
    }),
    events.on('worker.limited', ({ worker, types }) => {
      for (const { type, concurrency, limit } of types)
        log.info('Limits changed', { worker_id: worker, job_type: type, concurrency, limit })
    }),
    events.on('worker.overdue', ({ worker, running, drainMs }) => {
      for (const id of running)
        log.warn('Job not finished in time', { worker_id: worker, job_id: id, drain_ms: drainMs })
    }),
    events.on('worker.stopped', ({ worker }) => {
      log.info('Shutdown complete', { worker_id: worker })
      log.info('Worker stopped', { worker_id: worker })
    }),
    events.on('worker.error', ({ worker, during, error }) =>
      log.error('Worker error', { worker_id: worker, during, error: errorText(error) }),
    ),
  ]
}

/** Lines about keepers and their schedules. Returns the detachers. */
export function logKeeper(events: Events, log: Log): readonly (() => void)[] {
  return [
    events.on('keeper.started', ({ keeper, duties }) => log.info('Keeper started', { keeper_id: keeper, duties })),
    events.on('keeper.leading', ({ keeper, term }) => log.info('Keeper is active', { keeper_id: keeper, term })),
    events.on('keeper.waiting', ({ keeper }) => log.info('Keeper is no longer active', { keeper_id: keeper })),
    events.on('keeper.stopped', ({ keeper, schedules }) => {
      // Each by name. They stay stored, and another keeper goes on with them.
      for (const schedule of schedules) log.info('Schedule no longer kept here', { keeper_id: keeper, schedule })
      log.info('Keeper stopped', { keeper_id: keeper })
    }),
    events.on('keeper.error', ({ keeper, during, error }) => {
      log.error('Keeper error', { keeper_id: keeper, during, error: errorText(error) })
    }),
    events.on('schedule.registered', ({ name, type, cron, tz, nextAtMs }) =>
      log.info('Schedule registered', { schedule: name, cron, tz, job_type: type, next: isoOrNull(nextAtMs) }),
    ),
    events.on('schedule.fired', ({ name, type, tickMs, lateMs, jobId, status }) =>
      log.info('Schedule fired', {
        schedule: name,
        job_id: jobId,
        job_type: type,
        tick: toIso(tickMs),
        late_ms: lateMs,
        status,
      }),
    ),
    events.on('schedule.skipped', ({ name, type, tickMs, jobId }) =>
      log.warn('Schedule skipped: its last run has not ended', {
        schedule: name,
        job_id: jobId,
        job_type: type,
        tick: toIso(tickMs),
      }),
    ),
    events.on('schedule.missed', ({ name, type, count, isLeast, firstMs }) =>
      log.warn('Schedule missed ticks: no keeper ran then', {
        ...{ schedule: name, job_type: type, count },
        ...(isLeast && { at_least: true }),
        first: toIso(firstMs),
      }),
    ),
    events.on('schedule.changed', ({ name, change }) => log.info('Schedule changed', { schedule: name, change })),
  ]
}

function isoOrNull(ms: number | null): string | null {
  return ms === null ? null : toIso(ms)
}
