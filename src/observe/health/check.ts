import type { Counts, Engine, Inspector } from '../../engine/engine.ts'
import type { Presence } from '../../engine/presence.ts'
import { OptionError } from '../../errors.ts'
import { type OptionNames, refuseUnknown } from '../../job/known-options.ts'
import { type Clock, systemClock } from '../../time/clock.ts'
import { ANSWER_MS, answerWithin } from '../deadline.ts'
import { errorText } from '../error-text.ts'
import {
  deadLettersHealth,
  type Health,
  type HealthStatus,
  healthOf,
  pingHealth,
  queuesHealth,
  workersHealth,
} from './health.ts'

export interface HealthOptions {
  /** Who is at work. */
  readonly presence: Pick<Presence, 'list'>
  /** Fewer running workers than this are degraded, none is unhealthy. 1 unless told; 0 where none is expected. */
  readonly minWorkers?: number
  /** From this many dead letters on it is unhealthy; fewer are degraded. 100 unless told. */
  readonly deadLetterThreshold?: number
  readonly clock?: Clock
}

const HEALTH_NAMES: OptionNames<HealthOptions> = {
  presence: true,
  minWorkers: true,
  deadLetterThreshold: true,
  clock: true,
}

/** A mill, or whatever has its engine. */
export interface Examined {
  readonly engine: Pick<Engine, 'ping' | 'counts'> & { readonly inspector?: Pick<Inspector, 'oldestDue'> }
}

/**
 * Four checks at once, none longer than a second: whether the engine answers, whether workers run, how long jobs wait,
 * and how many are dead letters. It never rejects for what it finds.
 *
 * @example
 * const { status, details } = await checkHealth(mill, { presence })
 */
export async function checkHealth({ engine }: Examined, options: HealthOptions): Promise<Health> {
  refuseUnknown(options, HEALTH_NAMES, 'checkHealth')
  const { presence, minWorkers = 1, deadLetterThreshold = 100, clock = systemClock } = options
  checkWhole('minWorkers', minWorkers, 0)
  checkWhole('deadLetterThreshold', deadLetterThreshold, 1)
  const bounded = async (what: string, check: () => Promise<HealthStatus>, otherwise: 'unhealthy' | 'degraded') => {
    try {
      return await answerWithin(clock, ANSWER_MS, what, check)
    } catch (error) {
      return { status: otherwise, error: errorText(error) }
    }
  }
  // Asked once for the two checks that need it.
  let counted: Promise<Counts> | null = null
  const counts = (): Promise<Counts> => {
    counted ??= engine.counts()
    return counted
  }
  const [engineStatus, workers, queues, deadLetters] = await Promise.all([
    bounded('a ping of the engine', () => ping(engine, clock), 'unhealthy'),
    // X170: a presence that cannot be read says nothing about the workers.
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

/** A worker says each of its types; one that is stopping takes no more jobs. */
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
