import type { Counts, Engine } from '../../engine/engine.ts'
import { OptionError } from '../../errors.ts'
import type { Events, MillEvents } from '../../events.ts'
import { type Clock, Moment, systemClock } from '../../time/clock.ts'
import { ANSWER_MS, answerWithin } from '../deadline.ts'
import { type EndedFigures, endedFigures, type Figures, storedFigures, totalOf } from './figures.ts'
import { EndedWindow, WINDOW_MS_MAX } from './window.ts'

export interface KeyFigures {
  /**
   * What stands in the store now, and how attempts ended here in the last `windowMs`: an hour unless told, and at most.
   * Rejects when the engine does not answer within a second.
   */
  collectMetrics(windowMs?: number): Promise<Figures>
  /** Without asking the engine: how attempts ended here, by type. */
  endedByType(windowMs?: number): ReadonlyMap<string, EndedFigures>
  /** Stops listening. What was counted stays until it is too old. */
  detach(): void
}

/** A mill, or whatever has its events and its engine. */
export interface Figured {
  readonly events: Events
  readonly engine: Pick<Engine, 'counts' | 'inspector'>
}

/**
 * Counts the ends of attempts for document B's key figures. Attach before workers start. Ends are those of workers and
 * keepers of this mill; what stands in the store is everybody's.
 *
 * @example
 * const figures = attachFigures(mill)
 * const { successRate, latencyP95Ms, queueAgeMs } = await figures.collectMetrics()
 */
export function attachFigures(
  { events, engine }: Figured,
  { clock = systemClock }: { readonly clock?: Clock } = {},
): KeyFigures {
  const window = new EndedWindow()
  const detachers = listen(events, window, clock)
  const tallies = (windowMs: number) => window.sum(clock.monotonicMs(), checkWindow(windowMs))
  const byType = (windowMs: number): ReadonlyMap<string, EndedFigures> =>
    new Map([...tallies(windowMs)].map(([type, tally]) => [type, endedFigures(tally, windowMs)]))
  return {
    async collectMetrics(windowMs = WINDOW_MS_MAX) {
      checkWindow(windowMs)
      const [counts, queueAgeMs] = await answerWithin(clock, ANSWER_MS, 'the key figures', () =>
        Promise.all([engine.counts(), queueAge(engine, clock)]),
      )
      return {
        windowMs,
        queueAgeMs,
        ...storedFigures(Object.values(counts)),
        ...endedFigures(totalOf(tallies(windowMs).values()), windowMs),
        deadByType: deadByType(counts),
        byType: Object.fromEntries(byType(windowMs)),
      }
    },
    endedByType: (windowMs = WINDOW_MS_MAX) => byType(windowMs),
    detach() {
      for (const detach of detachers) detach()
    },
  }
}

/** X086: a job that is due later waits for nobody. Null where the engine cannot say. */
export async function queueAge(engine: Pick<Engine, 'inspector'>, clock: Clock): Promise<number | null> {
  if (engine.inspector === undefined) return null
  const oldest = await engine.inspector.oldestDue()
  return oldest === null ? 0 : Math.max(0, clock.nowMs() - oldest.runAtMs)
}

function deadByType(counts: Counts): Figures['deadByType'] {
  const dead = Object.entries(counts).map(([type, one]) => [type, one.dead] as const)
  return Object.fromEntries(dead.filter(([, count]) => count > 0))
}

function listen(events: Events, window: EndedWindow, clock: Clock): readonly (() => void)[] {
  const now = new Moment(() => clock.monotonicMs())
  const at = (type: string) => window.at(now.ms, type)
  return [
    events.on('job.settled', ({ job, outcome, durationMs }) => {
      if (outcome.kind === 'release') return
      const tally = at(job.type)
      if (outcome.kind !== 'complete') {
        fail(tally, outcome)
        return
      }
      tally.completed += 1
      tally.durations.add(durationMs)
    }),
    // X085
    events.on('lease.reaped', ({ job, outcome }) => {
      const tally = at(job.type)
      tally.expired += 1
      fail(tally, outcome)
    }),
  ]
}

function fail(tally: ReturnType<EndedWindow['at']>, { kind }: MillEvents['lease.reaped']['outcome']): void {
  tally.failed += 1
  if (kind === 'dead') tally.dead += 1
}

function checkWindow(windowMs: number): number {
  if (windowMs > 0 && windowMs <= WINDOW_MS_MAX) return windowMs
  throw new OptionError(`'windowMs' is ${windowMs}; give milliseconds above 0 and up to ${WINDOW_MS_MAX}`)
}
