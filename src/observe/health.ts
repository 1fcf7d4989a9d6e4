import type { Counts, Engine, Inspector } from '../engine/engine.ts'
import { pausesIn } from '../engine/pauses.ts'
import {
  knownWorkers,
  NO_PRESENCE,
  type Presence,
  type RememberingPresence,
  type WorkersRead,
} from '../engine/presence.ts'
import { OptionError } from '../errors.ts'
import { errorText } from '../job/error-record.ts'
import { type OptionNames, refuseUnknown } from '../job/known-options.ts'
import { type Clock, systemClock } from '../time/clock.ts'
import { formatDuration } from '../time/duration.ts'
import { within } from '../time/wait.ts'
import type { ObservedTopics } from './lag.ts'
import { ANSWER_MS, type Found } from './observed-mill.ts'
import { unclaimedOf } from './unclaimed.ts'

export interface HealthOptions {
  /** Which workers run. */
  readonly presence: Pick<Presence, 'list'>
  /** Fewer running workers are degraded, none is unhealthy; default: 1. Use 0 when none is expected. */
  readonly minWorkers?: number
  /** This many dead letters are unhealthy, fewer are degraded; default: 100. */
  readonly deadLetterThreshold?: number
  /** Which types are paused: their jobs wait for no worker. Default: none. */
  readonly paused?: () => Promise<readonly string[]>
  readonly clock?: Clock
}

const HEALTH_NAMES: OptionNames<HealthOptions> = {
  presence: true,
  minWorkers: true,
  deadLetterThreshold: true,
  paused: true,
  clock: true,
}

/**
 * Where health reads the workers of an engine from: its presence, or the workers that its store knows by itself, such as the
 * members of a consumer group.
 */
export function workersOf(
  engine: WorkersRead,
  clock: Clock = systemClock,
): Pick<HealthOptions, 'presence' | 'minWorkers' | 'paused'> {
  const presence = knownWorkers(engine, clock)
  // An engine that does not know its workers cannot miss one.
  if (presence === undefined) return { presence: NO_PRESENCE, minWorkers: 0 }
  const pauses = pausesIn(engine)
  return { presence, ...(pauses && { paused: async () => (await pauses.list()).map(({ type }) => type) }) }
}

/** The parts of an engine that the checks read. */
export type CheckedEngine = Pick<Engine, 'ping' | 'counts'> & { readonly inspector?: Pick<Inspector, 'oldestDue'> }

/**
 * Four checks at once, each for at most a second: whether the engine answers, whether workers run, how long jobs wait, and
 * how many dead letters there are. Never rejects because of what it finds.
 *
 * @example
 * const { status, details } = await checkHealth(mill, { presence })
 */
export async function checkHealth(
  { engine }: { readonly engine: CheckedEngine },
  options: HealthOptions,
): Promise<Health> {
  refuseUnknown(options, HEALTH_NAMES, 'checkHealth')
  const { presence, paused, clock = systemClock } = options
  const { minWorkers = MIN_WORKERS_DEFAULT, deadLetterThreshold = DEAD_LETTERS_DEFAULT } = options
  checkWhole('minWorkers', minWorkers, 0)
  checkWhole('deadLetterThreshold', deadLetterThreshold, 1)
  const bounded = async (what: string, check: () => Promise<HealthStatus>, otherwise: 'unhealthy' | 'degraded') => {
    try {
      return await within(clock, ANSWER_MS, what, check)
    } catch (error) {
      return { status: otherwise, error: errorText(error) }
    }
  }
  // Two checks share one read.
  let counted: Promise<Counts> | null = null
  const counts = (): Promise<Counts> => {
    counted ??= engine.counts()
    return counted
  }
  const beats = (async () => presence.list())()
  // Each check that reads them reports the error.
  beats.catch(() => {})
  const [engineStatus, workers, queues, deadLetters] = await Promise.all([
    bounded('a ping of the engine', () => ping(engine, clock), 'unhealthy'),
    // An unreadable presence says nothing about the workers.
    bounded('listing workers', async () => workersHealth(running(await beats), minWorkers), 'degraded'),
    bounded(
      'looking at the queues',
      async () => {
        const { inspector } = engine
        const [byType, oldest] = await Promise.all([counts(), inspector?.oldestDue() ?? null])
        const waitingMs = oldest === null ? null : Math.max(0, clock.nowMs() - oldest.runAtMs)
        // Without an inspector waiting times are unknown, so jobs without a worker for their type are reported instead.
        const isJudged = inspector === undefined && minWorkers > 0
        const unclaimed = isJudged ? await unclaimedOf(byType, beats, paused) : {}
        return queuesHealth(Object.keys(byType).length, waitingMs, unclaimed)
      },
      'unhealthy',
    ),
    bounded(
      'counting dead letters',
      async () => deadLettersHealth(dead(await counts()), deadLetterThreshold),
      'unhealthy',
    ),
  ])
  return healthOf({ engine: engineStatus, workers, queues, deadLetters }, { minWorkers, deadLetterThreshold })
}

async function ping(engine: Pick<Engine, 'ping'>, clock: Clock): Promise<HealthStatus> {
  const startMs = clock.monotonicMs()
  await engine.ping()
  return pingHealth(Math.round(clock.monotonicMs() - startMs))
}

/** Workers send a beat per type. A stopping worker takes no more jobs. */
function running(beats: Awaited<ReturnType<Presence['list']>>): number {
  return new Set(beats.filter(({ status }) => status === 'RUNNING').map(({ instance }) => instance)).size
}

function dead(counts: Counts): number {
  return Object.values(counts).reduce((sum, one) => sum + one.dead, 0)
}

function checkWhole(name: string, value: number, least: number): void {
  if (Number.isInteger(value) && value >= least) return
  throw new OptionError(`'${name}' is ${value}; give a whole number from ${least}`)
}

export type HealthWord = 'healthy' | 'degraded' | 'unhealthy'

/** What one check found. */
export interface HealthStatus {
  readonly status: HealthWord
  /** Milliseconds. */
  readonly latency?: number
  readonly error?: string
  readonly details?: {
    readonly count?: number
    /** How many milliseconds the oldest due job has been waiting; null when none waits. */
    readonly oldestWaiting?: number | null
    /** Waiting jobs by type, of types that no worker runs. Only where the engine cannot tell how long jobs have waited. */
    readonly unclaimed?: Readonly<Record<string, number>>
  }
}

export interface HealthChecks {
  /** Whether the engine could serve a claim now. */
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

export interface HealthReason {
  readonly check: keyof HealthChecks
  readonly text: string
}

/** The limits of the checks. */
export type HealthLimits = Pick<HealthOptions, 'minWorkers' | 'deadLetterThreshold'>

export interface Health {
  /** The worst of the checks. */
  readonly status: HealthWord
  /** A sentence for each check that is not healthy. */
  readonly reasons: readonly HealthReason[]
  readonly checks: HealthChecks
  /** 0 or null when the check failed. */
  readonly details: HealthDetails
}

export const LATENCY_MS_MAX = 100
export const WAITING_MS_MAX = 3_600_000
export const MIN_WORKERS_DEFAULT = 1
export const DEAD_LETTERS_DEFAULT = 100
const WORST_FIRST = ['unhealthy', 'degraded', 'healthy'] as const

/** The worst of all. */
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

/** A job that waits for more than an hour probably has no worker. */
export function queuesHealth(
  count: number,
  oldestWaiting: number | null,
  unclaimed: Readonly<Record<string, number>> = {},
): HealthStatus {
  const isStale = oldestWaiting !== null && oldestWaiting > WAITING_MS_MAX
  const isUnclaimed = Object.keys(unclaimed).length > 0
  const details = { count, oldestWaiting, ...(isUnclaimed && { unclaimed }) }
  return { status: isStale || isUnclaimed ? 'degraded' : 'healthy', details }
}

export function deadLettersHealth(count: number, threshold: number): HealthStatus {
  if (count === 0) return { status: 'healthy', details: { count } }
  return { status: count < threshold ? 'degraded' : 'unhealthy', details: { count } }
}

export function healthOf(checks: HealthChecks, limits: HealthLimits = {}): Health {
  const { engine, workers, queues, deadLetters } = checks
  return {
    status: aggregateStatus([engine, workers, queues, deadLetters]),
    reasons: CHECK_NAMES.filter((check) => checks[check].status !== 'healthy').map((check) => ({
      check,
      text: reasonText(check, checks[check], limits),
    })),
    checks,
    details: {
      activeWorkers: workers.details?.count ?? 0,
      totalQueues: queues.details?.count ?? 0,
      oldestWaitingJob: queues.details?.oldestWaiting ?? null,
      deadLetterCount: deadLetters.details?.count ?? 0,
    },
  }
}

const CHECK_NAMES = ['engine', 'workers', 'queues', 'deadLetters'] as const satisfies readonly (keyof HealthChecks)[]

/** Why a check is not healthy, as health reports and alerts say it. */
export function reasonText(check: keyof HealthChecks, found: HealthStatus, limits: HealthLimits = {}): string {
  const { minWorkers = MIN_WORKERS_DEFAULT, deadLetterThreshold = DEAD_LETTERS_DEFAULT } = limits
  const { error, latency, details } = found
  const count = details?.count ?? 0
  switch (check) {
    case 'engine':
      if (error !== undefined) return `the engine does not answer: ${error}`
      return `a ping of the engine takes ${latency} ms; the limit is ${LATENCY_MS_MAX} ms`
    case 'workers':
      if (error !== undefined) return `the list of workers cannot be read: ${error}`
      if (count === 0) return 'no worker runs'
      return `only ${counted(count, 'worker runs', 'workers run')}; ${minWorkers} are expected`
    case 'queues':
      return error === undefined ? queuesText(found) : `the queues cannot be read: ${error}`
    case 'deadLetters': {
      if (error !== undefined) return `the dead letters cannot be counted: ${error}`
      const waiting = counted(count, 'dead letter waits', 'dead letters wait')
      return count < deadLetterThreshold ? waiting : `${waiting}; the limit is ${deadLetterThreshold}`
    }
    default:
      return check satisfies never
  }
}

function queuesText({ details }: HealthStatus): string {
  const unclaimed = Object.entries(details?.unclaimed ?? {}).map(
    ([type, count]) =>
      `${counted(count, 'job', 'jobs')} of '${type}' ${count === 1 ? 'waits' : 'wait'} and no worker runs this type`,
  )
  if (unclaimed.length > 0) return unclaimed.join('; ')
  return `a job has been due for ${formatDuration(details?.oldestWaiting ?? 0)}, longer than an hour`
}

function counted(count: number, one: string, many: string): string {
  return `${count} ${count === 1 ? one : many}`
}

/** What a health endpoint can read. Each read takes at most a second. */
export interface HealthSources {
  health(): Promise<Health>
  ping(): Promise<Found<{ readonly latencyMs: number }>>
  readonly presence: Pick<RememberingPresence, 'list' | 'seen'>
  readonly topics: ObservedTopics | null
  readonly clock: Clock
}

export interface HealthAnswer {
  readonly httpStatus: number
  readonly body: object
}

/** Health in another format: called once with the sources, then the returned function for each request. */
export type HealthEndpoint = (sources: HealthSources) => () => Promise<HealthAnswer>
