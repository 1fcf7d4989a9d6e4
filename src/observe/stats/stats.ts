import type { Counts, Engine, TypeCounts } from '../../engine/engine.ts'
import { OptionError } from '../../errors.ts'
import type { Events, MillEvents } from '../../events.ts'
import { type Clock, Moment, systemClock } from '../../time/clock.ts'
import { within } from '../../time/wait.ts'
import type { ObservedMill } from '../observed-mill.ts'
import { ANSWER_MS } from '../observed-mill.ts'
import { addTally, EndedWindow, emptyTally, type Tally, WINDOW_MS_MAX } from './window.ts'

export interface StatsCollector {
  /**
   * The store's counts now, and the outcomes of attempts in the last `windowMs`; default and maximum: an hour. Rejects
   * when the engine does not answer within a second.
   */
  collect(windowMs?: number): Promise<Stats>
  /** The outcomes by type, without reading the engine. */
  endedByType(windowMs?: number): ReadonlyMap<string, EndedStats>
  /** Stops listening. The counts stay until they are too old. */
  detach(): void
}

/**
 * Counts how attempts end: rates, latencies and queue depths over a rolling window. Attach before workers start. Outcomes
 * are those of this mill's workers and keepers; store counts are global.
 *
 * @example
 * const stats = attachStats(mill)
 * const { successRate, latencyP95Ms, queueAgeMs } = await stats.collect()
 */
export function attachStats(
  { events, engine }: ObservedMill<'counts' | 'inspector'>,
  { clock = systemClock }: { readonly clock?: Clock } = {},
): StatsCollector {
  const window = new EndedWindow()
  const detach = listen(events, window, clock)
  const tallies = (windowMs: number) => window.sum(clock.monotonicMs(), checkWindow(windowMs))
  const byType = (windowMs: number): ReadonlyMap<string, EndedStats> =>
    new Map([...tallies(windowMs)].map(([type, tally]) => [type, endedStats(tally, windowMs)]))
  return {
    async collect(windowMs = WINDOW_MS_MAX) {
      checkWindow(windowMs)
      const [counts, queueAgeMs] = await within(clock, ANSWER_MS, 'the stats', () =>
        Promise.all([engine.counts(), queueAge(engine, clock)]),
      )
      return {
        windowMs,
        queueAgeMs,
        ...storedStats(Object.values(counts)),
        ...endedStats(totalOf(tallies(windowMs).values()), windowMs),
        deadByType: deadByType(counts),
        byType: Object.fromEntries(byType(windowMs)),
      }
    },
    endedByType: (windowMs = WINDOW_MS_MAX) => byType(windowMs),
    detach,
  }
}

/** Delayed jobs do not count. Null when the engine cannot tell. */
export async function queueAge(engine: Pick<Engine, 'inspector'>, clock: Clock): Promise<number | null> {
  if (engine.inspector === undefined) return null
  const oldest = await engine.inspector.oldestDue()
  return oldest === null ? 0 : Math.max(0, clock.nowMs() - oldest.runAtMs)
}

function deadByType(counts: Counts): Stats['deadByType'] {
  const dead = Object.entries(counts).map(([type, one]) => [type, one.dead] as const)
  return Object.fromEntries(dead.filter(([, count]) => count > 0))
}

function listen(events: Events, window: EndedWindow, clock: Clock): () => void {
  const now = new Moment(() => clock.monotonicMs())
  const at = (type: string) => window.at(now.ms, type)
  return events.attach({
    'job.settled': ({ job, outcome, durationMs }) => {
      if (outcome.kind === 'release') return
      const tally = at(job.type)
      if (outcome.kind !== 'complete') {
        fail(tally, outcome)
        return
      }
      tally.completed += 1
      tally.durations.add(durationMs)
    },
    'lease.reaped': ({ job, outcome }) => {
      const tally = at(job.type)
      tally.expired += 1
      fail(tally, outcome)
    },
  })
}

function fail(tally: ReturnType<EndedWindow['at']>, { kind }: MillEvents['lease.reaped']['outcome']): void {
  tally.failed += 1
  if (kind === 'dead') tally.dead += 1
}

function checkWindow(windowMs: number): number {
  if (windowMs > 0 && windowMs <= WINDOW_MS_MAX) return windowMs
  throw new OptionError(`'windowMs' is ${windowMs}; give milliseconds above 0 and up to ${WINDOW_MS_MAX}`)
}

/** How attempts ended in a window. */
export interface EndedStats {
  /** Jobs completed per minute. */
  readonly processingRate: number
  /** Share of completed jobs among completed and dead ones; 1 when there were none. */
  readonly successRate: number
  /** Share of failed attempts, including retried ones; 0 when there were none. */
  readonly attemptFailureRate: number
  /** Of completed attempts, by nearest rank. Exact up to a second, then rounded up by less than 1 %. */
  readonly latencyP50Ms: number
  readonly latencyP95Ms: number
  readonly latencyP99Ms: number
  /** Expired leases per minute. */
  readonly leaseExpiryRate: number
  /** Jobs completed or dead: the base of the success rate. */
  readonly processed: number
  readonly completed: number
}

/** What the store holds now. */
export interface StoredStats {
  /** All queued jobs: `due` plus `delayed`. */
  readonly queueDepth: number
  readonly due: number
  readonly delayed: number
  readonly inProgressCount: number
  readonly deadLetterCount: number
}

export interface Stats extends EndedStats, StoredStats {
  readonly windowMs: number
  /** How long the oldest due job has been waiting; 0 when none waits, null when the engine cannot tell. */
  readonly queueAgeMs: number | null
  /** By type, without types that have none. */
  readonly deadByType: Readonly<Record<string, number>>
  /** By type, without types that had no outcome in the window. */
  readonly byType: Readonly<Record<string, EndedStats>>
}

const MINUTE_MS = 60_000

export function endedStats(tally: Tally, windowMs: number): EndedStats {
  const { completed, dead, failed, expired, durations } = tally
  const processed = completed + dead
  const attempts = completed + failed
  const perMinute = (count: number): number => (count / windowMs) * MINUTE_MS
  return {
    processingRate: perMinute(completed),
    successRate: processed === 0 ? 1 : completed / processed,
    attemptFailureRate: attempts === 0 ? 0 : failed / attempts,
    latencyP50Ms: durations.percentile(0.5) ?? 0,
    latencyP95Ms: durations.percentile(0.95) ?? 0,
    latencyP99Ms: durations.percentile(0.99) ?? 0,
    leaseExpiryRate: perMinute(expired),
    processed,
    completed,
  }
}

export function storedStats(counts: readonly TypeCounts[]): StoredStats {
  const sum = (pick: (one: TypeCounts) => number): number => counts.reduce((total, one) => total + pick(one), 0)
  const due = sum(({ ready }) => ready)
  const delayed = sum((one) => one.delayed)
  return {
    queueDepth: due + delayed,
    due,
    delayed,
    inProgressCount: sum(({ inProgress }) => inProgress),
    deadLetterCount: sum(({ dead }) => dead),
  }
}

/** Over all types. */
export function totalOf(tallies: Iterable<Tally>): Tally {
  const total = emptyTally()
  for (const tally of tallies) addTally(total, tally)
  return total
}
