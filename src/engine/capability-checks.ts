import { UnsupportedError } from '../errors.ts'
import { backoffMaxMs } from '../job/backoff.ts'
import type { AnyJob } from '../job/definition.ts'
import type { NewJob } from '../job/job.ts'
import { PRIORITY_DEFAULT } from '../job/options.ts'
import type { Controls, DeadLetters, DiagnoseOptions, Engine, Finding, Inspector, Lookup } from './engine.ts'
import type { JobLogs } from './job-logs.ts'
import { Leadership } from './leadership.ts'
import { type LimitStore, limitsIn } from './limits.ts'
import type { Outbox } from './outbox.ts'
import { type PauseStore, pausesIn } from './pauses.ts'
import { presenceIn, type RememberingPresence, type WithPresence } from './presence.ts'
import type { Retention } from './retention.ts'
import { Schedules } from './schedules.ts'

/** Refuses at the door what the engine could not keep (I10): called for every definition a client or worker uses. */
export function admitDefinition(engine: Engine, definition: AnyJob): void {
  const { capabilities, name } = engine
  const refuse = (limit: string): never => {
    throw new UnsupportedError({ job: definition.type, engine: name, limit })
  }
  const retryMaxMs = backoffMaxMs(definition.backoff, definition.attempts)
  if (retryMaxMs > capabilities.retryDelayMaxMs) {
    refuse(`delays a retry by ${capabilities.retryDelayMaxMs} ms at most, the backoff asks for ${retryMaxMs} ms`)
  }
  const isBounded = definition.keepCompleted !== null || definition.keepDead !== null
  if (isBounded && engine.retention === undefined) refuse('removes no finished jobs')
  if (definition.limit !== null && capabilities.limits === 'refused') refuse(NO_RATES)
  if (definition.slots !== null && capabilities.slots === 'refused') refuse(NO_SLOTS)
  if (definition.schedule !== null && engine.records === undefined) refuse('keeps no schedules')
  if (!keepsPriority(engine, definition.priority)) refuse(NO_PRIORITY)
}

const NO_SLOTS = `cannot count running jobs over all workers; give 'concurrency' a number, which holds in each worker`
const NO_PRIORITY = `knows no priorities; leave out 'priority', or give urgent jobs a type of their own`

/** The default says nothing, so every engine takes it. */
function keepsPriority({ capabilities: { order } }: Engine, priority: number): boolean {
  return priority === PRIORITY_DEFAULT || order === 'priority' || order === 'ageing-priority'
}

/** The same for one job. `nowMs` tells how far off an absolute time is. */
export function admitJob(engine: Engine, job: NewJob, nowMs: number): void {
  const { capabilities, name } = engine
  const refuse = (limit: string): never => {
    throw new UnsupportedError({ job: job.type, engine: name, limit })
  }
  const delayMs = job.runAtMs === null ? job.delayMs : job.runAtMs - nowMs
  const delayMaxMs = capabilities.enqueueDelayMaxMs
  if (delayMs > 0 && delayMaxMs === 0) refuse('cannot delay a job')
  if (delayMs > delayMaxMs) refuse(`delays a job by ${delayMaxMs} ms at most, this one asks for ${delayMs} ms`)
  if (job.key !== null && capabilities.keys === 'refused') refuse('keeps no idempotency keys')
  if (job.latest !== null && !capabilities.latest) refuse('does not supersede by a latest key')
  const isBounded = typeof job.options?.keepCompleted === 'number' || typeof job.options?.keepDead === 'number'
  if (isBounded && engine.retention === undefined) refuse('removes no finished jobs')
  if (job.after !== null && !capabilities.dependencies) refuse('cannot make a job wait for others')
  if (!keepsPriority(engine, job.priority)) refuse(NO_PRIORITY)
}

/** For the worker's `ageing`. */
export function admitAgeing({ capabilities, name }: Engine): void {
  if (capabilities.order === 'ageing-priority') return
  throw new UnsupportedError({
    engine: name,
    limit: `cannot raise jobs that wait; leave out 'ageing', or use SQLite or Postgres`,
  })
}

export function admitTransaction(engine: Engine): void {
  if (engine.capabilities.transactionalEnqueue) return
  throw new UnsupportedError({
    engine: engine.name,
    limit: `cannot join a transaction of yours; enqueue after your commit, or through 'millrace/outbox'`,
  })
}

export function inspectorOf(engine: Engine): Inspector {
  if (engine.inspector !== undefined) return engine.inspector
  const limit = engine.lookup === undefined ? 'cannot look up single jobs' : 'keeps no results and no histories of jobs'
  throw new UnsupportedError({ engine: engine.name, limit })
}

/** What engines with and without an inspector can tell of single jobs. */
export function lookupOf(engine: Pick<Engine, 'name' | 'inspector' | 'lookup'>): Lookup {
  const lookup = lookupIn(engine)
  if (lookup !== undefined) return lookup
  throw new UnsupportedError({ engine: engine.name, limit: 'cannot look up single jobs' })
}

export function lookupIn({ inspector, lookup }: Pick<Engine, 'inspector' | 'lookup'>): Lookup | undefined {
  return inspector ?? lookup
}

export function controlsOf(engine: Engine): Controls {
  if (engine.controls !== undefined) return engine.controls
  throw new UnsupportedError({ engine: engine.name, limit: 'cannot cancel a job' })
}

export function deadLettersOf(engine: Pick<Engine, 'name' | 'deadLetters'>): DeadLetters {
  if (engine.deadLetters !== undefined) return engine.deadLetters
  throw new UnsupportedError({ engine: engine.name, limit: 'keeps no dead letters' })
}

/** All workers must hear of a pause, so it needs a store that they share. */
export const CANNOT_PAUSE = `cannot pause a type; give its workers and this command a place for it: --presence redis://…, or 'presence' of open`
export const CANNOT_LIMIT = `cannot change the limits of a type while its workers run; change its definition and restart them`
const NO_RATES = 'cannot hold a rate limit over all workers'
export const CANNOT_DRAIN = 'cannot ask a worker to stop'

/** An engine that cannot look up a job cannot erase one either: its records stay where they were written. */
export function inspectorForErasing(engine: Pick<Engine, 'name' | 'inspector'>): Inspector {
  if (engine.inspector !== undefined) return engine.inspector
  throw erasingUnsupported(engine.name)
}

export function erasingUnsupported(engine: string): UnsupportedError {
  const advice = `shorten 'retention.ms' of the topics, or delete them`
  return new UnsupportedError({
    engine,
    limit: `cannot erase a single job: its records stay until the retention of their topics ends; ${advice}`,
  })
}

export function schedulesOf(engine: Engine): Schedules {
  if (engine.records !== undefined) return new Schedules(engine.records)
  throw new UnsupportedError({ engine: engine.name, limit: 'keeps no schedules' })
}

export function leadershipOf(engine: Engine): Leadership {
  if (engine.records !== undefined) return new Leadership(engine.records)
  throw new UnsupportedError({ engine: engine.name, limit: 'cannot tell which of several keepers is active' })
}

export function retentionOf(engine: Engine): Retention {
  if (engine.retention !== undefined) return engine.retention
  throw new UnsupportedError({ engine: engine.name, limit: 'removes no finished jobs' })
}

export function logsOf(engine: Engine): JobLogs {
  if (engine.logs !== undefined) return engine.logs
  throw new UnsupportedError({ engine: engine.name, limit: 'keeps no logs of jobs' })
}

export function presenceOf(engine: Engine & WithPresence): RememberingPresence {
  const presence = presenceIn(engine)
  if (presence !== undefined) return presence
  throw new UnsupportedError({
    engine: engine.name,
    limit: 'keeps no heartbeats of workers; open the mill with a presence',
  })
}

export function pausesOf(engine: Engine & WithPresence): PauseStore {
  const pauses = pausesIn(engine)
  if (pauses !== undefined) return pauses
  throw new UnsupportedError({ engine: engine.name, limit: CANNOT_PAUSE })
}

/** All workers must hear of them, so they are kept where the engine keeps its pauses. */
export function limitStoreOf(engine: Engine): LimitStore {
  const limits = limitsIn(engine)
  if (limits !== undefined) return limits
  throw new UnsupportedError({ engine: engine.name, limit: CANNOT_LIMIT })
}

/** For a rate limit that is set while workers run. */
export function admitRate({ capabilities, name }: Engine, type: string): void {
  if (capabilities.limits === 'refused') throw new UnsupportedError({ job: type, engine: name, limit: NO_RATES })
}

export function outboxOf(engine: Engine): Outbox {
  if (engine.outbox !== undefined) return engine.outbox
  throw new UnsupportedError({ engine: engine.name, limit: 'has no outbox; keep it in SQLite or Postgres' })
}

/** Throws at once, and not by a rejection, where the engine has no diagnosis. */
export function diagnose(engine: Engine, options: DiagnoseOptions = {}): Promise<readonly Finding[]> {
  if (engine.diagnose !== undefined) return engine.diagnose(options)
  throw new UnsupportedError({ engine: engine.name, limit: 'has nothing on disk to examine' })
}
