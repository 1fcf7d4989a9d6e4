import { createHash } from 'node:crypto'
import { schedulesOf } from '../engine/capability-checks.ts'
import type { ScheduleRecord } from '../engine/schedules.ts'
import { defineJob } from '../job/definition.ts'
import type { NewJob } from '../job/job.ts'
import type { SchedulePlan } from '../job/schedule.ts'
import { encodeTime } from '../job/ulid.ts'
import { type Cron, parseCron } from '../time/cron.ts'
import type { ScheduleParts } from './parts.ts'
import { type PastTick, withTicks } from './past-ticks.ts'
import { type Declaration, readState, recordOf, type ScheduleState, type TypeDefaults } from './schedule-state.ts'

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

/**
 * Enqueues what a due schedule has to run and stores how far it is, in one step. Of several keepers that try, one
 * succeeds: the others find another revision and do nothing. Answers with the record as it is now, or null when somebody
 * else has changed it.
 */
export async function fire(
  parts: ScheduleParts,
  record: ScheduleRecord,
  graceMs: number,
): Promise<ScheduleRecord | null> {
  const { clock, engine, events } = parts
  const { name, nextAtMs: dueMs } = record
  if (dueMs === null) return record
  const state = readState(record)
  const nowMs = clock.nowMs()
  const { ticks, seenMs, missed } = dueTicks(state, dueMs, nowMs, graceMs)
  const isSkipped = ticks.length > 0 && (await overlaps(parts, state))
  const jobs = isSkipped ? [] : await prepareTicks(parts, { ...state, name }, ticks)
  const after: ScheduleState = {
    ...state,
    runs: state.runs + jobs.length,
    skips: state.skips + (isSkipped ? ticks.length : 0),
    missedTicks: state.missedTicks + (missed?.count ?? 0),
    lastTickMs: jobs.length === 0 ? state.lastTickMs : (ticks.at(-1) ?? null),
    lastJobId: jobs.at(-1)?.id ?? state.lastJobId,
    past: withTicks(state.past, pastOf({ ticks, jobs, missed })),
  }
  const next = recordOf(name, after, nextTick(after, seenMs))
  const receipts = await schedulesOf(engine).save(next, record.revision, jobs)
  if (receipts === null) return null
  for (const [index, { id, status }] of receipts.entries()) {
    const tickMs = ticks[index] ?? dueMs
    events.emit('schedule.fired', { name, type: state.type, tickMs, lateMs: nowMs - tickMs, jobId: id, status })
  }
  if (missed !== null) events.emit('schedule.missed', { name, type: state.type, ...missed })
  if (isSkipped)
    events.emit('schedule.skipped', { name, type: state.type, tickMs: dueMs, jobId: state.lastJobId ?? '' })
  return next
}

/** What a step has done, in the order of time: what was missed lies before what is run. Without jobs its ticks were skipped. */
function pastOf({
  ticks,
  jobs,
  missed,
}: Pick<DueTicks, 'ticks' | 'missed'> & { readonly jobs: readonly NewJob[] }): readonly PastTick[] {
  const before: readonly PastTick[] =
    missed === null ? [] : [{ what: 'missed', atMs: missed.firstMs, count: missed.count, jobId: null }]
  const now = ticks.map((atMs, index): PastTick => {
    const jobId = jobs[index]?.id ?? null
    return { what: jobId === null ? 'skipped' : 'run', atMs, count: 1, jobId }
  })
  return [...before, ...now]
}

/** Lets a schedule go on after the clock was set back. Answers with the record as it is now, or null as `fire` does. */
export async function setBack(parts: ScheduleParts, record: ScheduleRecord): Promise<ScheduleRecord | null> {
  const { clock, engine, events } = parts
  if (record.nextAtMs === null) return record
  const state = readState(record)
  const nextAtMs = tickAfterSetBack(state, record.nextAtMs, clock.nowMs())
  if (nextAtMs === null) return record
  const after: ScheduleState = { ...state, setBacks: (state.setBacks ?? 0) + 1 }
  const next = recordOf(record.name, after, nextAtMs)
  if ((await schedulesOf(engine).save(next, record.revision, [])) === null) return null
  events.emit('schedule.changed', { name: record.name, change: 'set back with the clock' })
  return next
}

/** Whether the run before is still waiting or running, and this schedule's runs may not overlap. */
async function overlaps({ engine }: ScheduleParts, state: ScheduleState): Promise<boolean> {
  if (state.overlap === 'allow' || state.lastJobId === null) return false
  const [last] = (await engine.inspector?.find([state.lastJobId])) ?? []
  return last?.state === 'queued' || last?.state === 'in_progress'
}

/** What a run is made of, whether the schedule is stored yet or not. */
export interface Runnable extends Pick<Declaration, 'type' | 'payload' | 'options'> {
  readonly defaults: TypeDefaults | null
}

/**
 * A job for a run, prepared as any other: checked against the definition where this process knows it. Where it does
 * not, what was known when the schedule was stored holds.
 */
export async function prepareRun(parts: ScheduleParts, schedule: Runnable): Promise<NewJob> {
  const { type, payload, options, defaults } = schedule
  const definition = parts.definitions.get(type) ?? defineJob({ type, ...defaults })
  return parts.prepare(definition, payload, options)
}

export async function prepareTicks(
  parts: ScheduleParts,
  schedule: Runnable & { readonly name: string; readonly setBacks?: number },
  ticks: readonly number[],
): Promise<readonly NewJob[]> {
  const [first] = ticks
  if (first === undefined) return []
  const job = await prepareRun(parts, schedule)
  return ticks.map((tickMs) => ({ ...job, id: runId(schedule.name, tickMs, schedule.setBacks) }))
}

const HASH_LENGTH = 16
const ALPHABET = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'

/**
 * The id of a schedule's run: a ULID made from the tick's time and the schedule's name, so that firing a tick a second time
 * uses the same id and enqueues nothing. `setBacks`: how often the clock was set back behind past ticks; runs after that
 * are new ones.
 */
export function runId(name: string, tickMs: number, setBacks = 0): string {
  const again = setBacks === 0 ? '' : `\n${setBacks}`
  const digest = createHash('sha256').update(`${name}\n${tickMs}${again}`).digest()
  const rest = [...digest.subarray(0, HASH_LENGTH)].map((byte) => ALPHABET.charAt(byte % ALPHABET.length))
  return encodeTime(tickMs) + rest.join('')
}
