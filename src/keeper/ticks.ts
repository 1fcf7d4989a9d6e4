import type { SchedulePlan } from '../job/schedule.ts'
import { type Cron, parseCron } from '../time/cron.ts'

/** What decides when a schedule runs. */
export interface Timed extends Pick<SchedulePlan, 'cron' | 'tz' | 'startMs' | 'endMs' | 'limit' | 'missed'> {
  readonly runs: number
}

export interface DueTicks {
  /** The times to enqueue a run for, oldest first. */
  readonly ticks: readonly number[]
  /** The schedule goes on with the first tick after this. That may be due already: then there is more to make up for. */
  readonly seenMs: number
  /** Due times that nothing is enqueued for, because no keeper ran then; null when there are none. */
  readonly missed: MissedTicks | null
}

export interface MissedTicks {
  readonly count: number
  /** There are more: counting was stopped. */
  readonly isLeast: boolean
  readonly firstMs: number
}

/** Missed ticks are counted up to here: a schedule of every second misses 31 million in a year. */
export const MISSED_COUNT_MAX = 1_000

/** Runs made up for in one step: each step is one transaction, which must not hold others up. */
export const STEP_TICKS_MAX = 100

/** The first tick strictly after `afterMs` within the schedule's bounds, or null when there is none left. */
export function nextTick(schedule: Timed, afterMs: number): number | null {
  const { cron, tz, startMs, endMs, limit, runs } = schedule
  if (limit !== null && runs >= limit) return null
  const tickMs = parseCron(cron, tz).next(startMs === null ? afterMs : Math.max(afterMs, startMs - 1))
  return tickMs === null || (endMs !== null && tickMs > endMs) ? null : tickMs
}

/** Keepers on machines whose clocks are not quite the same must not take each other's ticks for a clock set back. */
const SET_BACK_MS_MIN = 10_000

/**
 * Where a schedule goes on after the clock was set back, or null when it simply goes on. One that would wait for more than
 * one tick it has had already goes on from now. One that would wait for a single tick does wait: that tick has run, and
 * it does not run twice.
 */
export function tickAfterSetBack(schedule: Timed, nextAtMs: number, nowMs: number): number | null {
  const tickMs = nextTick(schedule, nowMs)
  if (tickMs === null || nextAtMs - tickMs < SET_BACK_MS_MIN) return null
  const secondMs = nextTick(schedule, tickMs)
  return secondMs !== null && secondMs < nextAtMs ? tickMs : null
}

/**
 * What a keeper that looks at `nowMs` has to do about a schedule due since `dueMs`. A tick is not missed as long as it is
 * no older than `graceMs`, which is what a change of keepers may take.
 */
export function dueTicks(schedule: Timed, dueMs: number, nowMs: number, graceMs: number): DueTicks {
  const cron = parseCron(schedule.cron, schedule.tz)
  const ticks = chosen(cron, schedule, dueMs, nowMs, graceMs)
  const seenMs = schedule.missed === 'all' ? (ticks.at(-1) ?? nowMs) : nowMs
  const missed =
    schedule.missed === 'all' ? null : missedTicks(cron, dueMs, Math.min(nowMs, schedule.endMs ?? nowMs), ticks)
  return { ticks, seenMs, missed }
}

function missedTicks(cron: Cron, dueMs: number, untilMs: number, ticks: readonly number[]): MissedTicks | null {
  const endMs = ticks[0] ?? untilMs + 1
  let [count, tickMs]: [number, number | null] = [0, dueMs]
  for (; tickMs !== null && tickMs < endMs && count < MISSED_COUNT_MAX; tickMs = cron.next(tickMs)) count += 1
  return count === 0 ? null : { count, isLeast: tickMs !== null && tickMs < endMs, firstMs: dueMs }
}

function chosen(cron: Cron, schedule: Timed, dueMs: number, nowMs: number, graceMs: number): readonly number[] {
  const untilMs = Math.min(nowMs, schedule.endMs ?? nowMs)
  if (dueMs > untilMs) return []
  switch (schedule.missed) {
    case 'all': {
      const room = Math.min(STEP_TICKS_MAX, (schedule.limit ?? Number.POSITIVE_INFINITY) - schedule.runs)
      const ticks: number[] = []
      for (let tickMs: number | null = dueMs; tickMs !== null && tickMs <= untilMs; tickMs = cron.next(tickMs)) {
        if (ticks.length >= room) break
        ticks.push(tickMs)
      }
      return ticks
    }
    case 'one':
      return [latestTick(cron, dueMs, untilMs)]
    case 'skip': {
      const tickMs = latestTick(cron, dueMs, untilMs)
      return nowMs - tickMs <= graceMs ? [tickMs] : []
    }
    default:
      return schedule.missed satisfies never
  }
}

const WINDOWS_MS = [60_000, 3_600_000, 86_400_000, 32 * 86_400_000, 367 * 86_400_000, Number.POSITIVE_INFINITY]

/** The last tick up to `untilMs`. Walking from the first would take minutes after a year of a schedule of every second. */
function latestTick(cron: Cron, dueMs: number, untilMs: number): number {
  for (const windowMs of WINDOWS_MS) {
    const fromMs = Math.max(dueMs, untilMs - windowMs)
    let latest: number | null = fromMs === dueMs ? dueMs : null
    for (let tickMs = cron.next(fromMs); tickMs !== null && tickMs <= untilMs; tickMs = cron.next(tickMs)) {
      latest = tickMs
    }
    if (latest !== null) return latest
  }
  return dueMs
}
