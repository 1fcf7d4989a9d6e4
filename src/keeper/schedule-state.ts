import { randomUUID } from 'node:crypto'
import type { ScheduleRecord } from '../engine/schedules.ts'
import { EngineError, MillraceError } from '../errors.ts'
import type { AnyJob } from '../job/definition.ts'
import { MISSED_POLICIES, OVERLAP_POLICIES, type SchedulePlan } from '../job/schedule.ts'
import { type PastTick, readTicks } from './past-ticks.ts'

/** The options of a type's jobs when the process that enqueues them does not have the definition. */
export interface TypeDefaults {
  readonly priority: number
  readonly attempts: number
  readonly version: number
}

/** A schedule and how far it is: what the body of its record holds. */
export interface ScheduleState extends SchedulePlan {
  readonly type: string
  readonly defaults: TypeDefaults | null
  readonly paused: boolean
  /** Runs enqueued on the clock so far. */
  readonly runs: number
  /** Ticks left out because the run before was still live. */
  readonly skips: number
  /** Ticks that nothing was enqueued for, because no keeper ran then. A lower bound where one gap had more than 1000. */
  readonly missedTicks: number
  readonly lastTickMs: number | null
  readonly lastJobId: string | null
  /** What became of the last ticks, the newest last. Those that a keeper of an earlier version fired are not in it. */
  readonly past: readonly PastTick[]
  /** How often the clock was set back behind ticks that had run, and the schedule went on from there. */
  readonly setBacks?: number
  /** As the code declared it last; null when it was made at run time alone. */
  readonly declared: Declaration | null
}

export type Declaration = SchedulePlan & { readonly type: string }

/** A schedule as it is shown. */
export interface ScheduleView extends ScheduleState {
  readonly name: string
  readonly nextAtMs: number | null
}

export function defaultsOf({ priority, attempts, version }: AnyJob): TypeDefaults {
  return { priority, attempts, version }
}

/** What is in the body, with fields that a newer version wrote kept as they are. */
export function readState(record: ScheduleRecord): ScheduleState {
  const { nextAtMs: _, ...body } = parseBody(record)
  const { type, cron, tz } = body
  if (typeof type !== 'string' || typeof cron !== 'string') throw unreadable(record.name)
  return {
    ...body,
    type,
    cron,
    tz: typeof tz === 'string' ? tz : 'UTC',
    startMs: numberOr(body.startMs, null),
    endMs: numberOr(body.endMs, null),
    limit: numberOr(body.limit, null),
    missed: MISSED_POLICIES.find((policy) => policy === body.missed) ?? 'one',
    overlap: OVERLAP_POLICIES.find((policy) => policy === body.overlap) ?? 'skip',
    payload: body.payload ?? null,
    options: asObject(body.options) ?? {},
    defaults: readDefaults(body.defaults),
    paused: body.paused === true,
    runs: numberOr(body.runs, 0),
    skips: numberOr(body.skips, 0),
    missedTicks: numberOr(body.missedTicks, 0),
    lastTickMs: numberOr(body.lastTickMs, null),
    lastJobId: typeof body.lastJobId === 'string' ? body.lastJobId : null,
    past: readTicks(body.past),
    ...(typeof body.setBacks === 'number' && { setBacks: body.setBacks }),
    // Only ever compared and copied, field by field.
    declared: asObject(body.declared) as Declaration | null,
  }
}

/** A schedule to be stored, under a new revision. */
export function recordOf(name: string, state: ScheduleState, nextAtMs: number | null): ScheduleRecord {
  return { name, revision: randomUUID(), nextAtMs, body: JSON.stringify({ ...state, nextAtMs }) }
}

export function toView(record: ScheduleRecord): ScheduleView {
  return { ...readState(record), name: record.name, nextAtMs: record.nextAtMs }
}

/** Null for a record that this version cannot read: it stays as it is, and the others go on. */
export function toViewOrNull(record: ScheduleRecord): ScheduleView | null {
  try {
    return toView(record)
  } catch {
    return null
  }
}

/** What the audit keeps of a schedule: not its payload. */
export function auditedFacts(view: ScheduleView): Readonly<Record<string, unknown>> {
  const { cron, tz, paused, nextAtMs, startMs, endMs, limit, missed, overlap } = view
  return { cron, tz, paused, nextAtMs, startMs, endMs, limit, missed, overlap }
}

/** Schedules whose due tick nobody has taken care of for longer than `toleranceMs`: expected, but missing. */
export function overdueSchedules<Due extends { readonly nextAtMs: number | null }>(
  schedules: readonly Due[],
  nowMs: number,
  toleranceMs: number,
): readonly Due[] {
  return schedules.filter(({ nextAtMs }) => nextAtMs !== null && nowMs - nextAtMs > toleranceMs)
}

function parseBody({ name, body }: ScheduleRecord): Readonly<Record<string, unknown>> {
  try {
    const parsed = asObject(JSON.parse(body))
    if (parsed !== null) return parsed
  } catch {
    // Said below, with the schedule's name.
  }
  throw unreadable(name)
}

function unreadable(name: string): MillraceError {
  return new MillraceError(
    'ERR_SCHEDULE_UNREADABLE',
    `the schedule '${name}' cannot be read as stored; remove it and add it again`,
  )
}

function asObject(value: unknown): Readonly<Record<string, unknown>> | null {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : null
}

function numberOr<Other>(value: unknown, other: Other): number | Other {
  return typeof value === 'number' && Number.isFinite(value) ? value : other
}

function readDefaults(value: unknown): TypeDefaults | null {
  const defaults = asObject(value)
  if (defaults === null) return null
  const { priority, attempts, version } = defaults
  if (typeof priority !== 'number' || typeof attempts !== 'number' || typeof version !== 'number') return null
  return { priority, attempts, version }
}

/** Somebody else changes a schedule between a look and a save once in a while; never so often in a row. */
export const SAVE_TRIES = 20

export function busy(name: string): EngineError {
  return new EngineError('ERR_STORAGE_BUSY', `the schedule '${name}' was changed by others all the time; try again`)
}
