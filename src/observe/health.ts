import type { Counts, Engine, Inspector } from '../engine/engine.ts'
import type { Presence, RememberingPresence } from '../engine/presence.ts'
import { OptionError } from '../errors.ts'
import { errorText } from '../job/error-record.ts'
import { type OptionNames, refuseUnknown } from '../job/known-options.ts'
import { type Clock, systemClock } from '../time/clock.ts'
import { within } from '../time/wait.ts'
import type { ObservedTopics } from './lag.ts'
import { ANSWER_MS, type Found } from './observed-mill.ts'

export interface HealthOptions {
  /** Which workers run. */
  readonly presence: Pick<Presence, 'list'>
  /** Fewer running workers are degraded, none is unhealthy; default: 1. Use 0 when none is expected. */
  readonly minWorkers?: number
  /** This many dead letters are unhealthy, fewer are degraded; default: 100. */
  readonly deadLetterThreshold?: number
  readonly clock?: Clock
}

const HEALTH_NAMES: OptionNames<HealthOptions> = {
  presence: true,
  minWorkers: true,
  deadLetterThreshold: true,
  clock: true,
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
  const { presence, minWorkers = 1, deadLetterThreshold = 100, clock = systemClock } = options
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
  const [engineStatus, workers, queues, deadLetters] = await Promise.all([
    bounded('a ping of the engine', () => ping(engine, clock), 'unhealthy'),
    // An unreadable presence says nothing about the workers.
    bounded('listing workers', async () => workersHealth(running(await presence.list()), minWorkers), 'degraded'),
    bounded(
      'looking at the queues',
      async () => {
        const [byType, oldest] = await Promise.all([counts(), engine.inspector?.oldestDue() ?? null])
        const waitingMs = oldest === null ? null : Math.max(0, clock.nowMs() - oldest.runAtMs)
        return queuesHealth(Object.keys(byType).length, waitingMs)
      },
      'unhealthy',
    ),
    bounded(
      'counting dead letters',
      async () => deadLettersHealth(dead(await counts()), deadLetterThreshold),
      'unhealthy',
    ),
  ])
  return healthOf({ engine: engineStatus, workers, queues, deadLetters })
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

export interface Health {
  /** The worst of the checks. */
  readonly status: HealthWord
  readonly checks: HealthChecks
  /** 0 or null when the check failed. */
  readonly details: HealthDetails
}

const LATENCY_MS_MAX = 100
const WAITING_MS_MAX = 3_600_000
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
