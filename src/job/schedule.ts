import { isMillraceError, OptionError } from '../errors.ts'
import { parseCron } from '../time/cron.ts'
import { findLoss } from './json.ts'
import { type OptionNames, omitUndefined, refuseUnknown } from './known-options.ts'
import type { EnqueueOptions } from './options.ts'

/** The options of every run. A run has its own id and time, so it takes no key and no delay. */
type ScheduledOptions = Omit<EnqueueOptions, 'key' | 'latest' | 'delay' | 'at' | 'after' | 'ifDead'>

/** A schedule as it is written in code. */
export interface ScheduleSpec {
  /** `minute hour day month weekday`, or six fields with the second first. */
  readonly cron: string
  /** Default: UTC. `tz` and `timezone` are the same; `tz` wins. */
  readonly tz?: string
  readonly timezone?: string
  /** No runs before `start` or after `end`. */
  readonly start?: Date
  readonly end?: Date
  /** The most runs in total. */
  readonly limit?: number
  /**
   * Ticks that passed while no keeper was running: `one` runs the last one, `all` runs every one, `skip` runs none but a tick
   * missed during a change of keepers. Default: `one`.
   */
  readonly missed?: 'skip' | 'one' | 'all'
  /**
   * `skip` drops a tick while the job of the previous run is queued or in progress. Default: `skip`, or `allow` with
   * `missed: 'all'`.
   */
  readonly overlap?: 'skip' | 'allow'
  /** Any JSON value. Default: null. */
  readonly payload?: unknown
  readonly options?: ScheduledOptions
}

/** The schedule in a definition: a cron expression alone where the job takes no payload. */
export type DeclaredSchedule<Payload = unknown> = null extends Payload
  ? string | (ScheduleSpec & { readonly name?: string; readonly payload?: Payload })
  : ScheduleWithPayload<Payload>

/** For a job with a payload, which every run is enqueued with. The schedule's name defaults to the job's type. */
export interface ScheduleWithPayload<Payload> extends ScheduleSpec {
  readonly name?: string
  readonly payload: Payload
}

/** A schedule with all defaults resolved, as it is stored. */
export interface SchedulePlan {
  readonly cron: string
  readonly tz: string
  readonly startMs: number | null
  readonly endMs: number | null
  readonly limit: number | null
  readonly missed: 'skip' | 'one' | 'all'
  readonly overlap: 'skip' | 'allow'
  readonly payload: unknown
  readonly options: ScheduledOptions
}

export const MISSED_POLICIES = ['skip', 'one', 'all'] as const
export const OVERLAP_POLICIES = ['skip', 'allow'] as const

const NAME_PATTERN = /^[A-Za-z0-9][A-Za-z0-9._:/-]{0,127}$/

export function checkScheduleName(name: string): string {
  if (typeof name === 'string' && NAME_PATTERN.test(name)) return name
  throw new OptionError(
    `the schedule's name is '${name}'; use 1 to 128 letters, digits, '.', '_', ':', '/' or '-', a letter or digit first`,
  )
}

const SCHEDULE_NAMES: OptionNames<ScheduleSpec> = {
  cron: true,
  tz: true,
  timezone: true,
  start: true,
  end: true,
  limit: true,
  missed: true,
  overlap: true,
  payload: true,
  options: true,
}

const RUN_NAMES: OptionNames<ScheduledOptions> = {
  name: true,
  priority: true,
  attempts: true,
  backoff: true,
  timeout: true,
  tenant: true,
  tags: true,
  removeOnComplete: true,
  removeOnFail: true,
}

/** Refuses a schedule that could never run as intended. */
export function checkSchedule(spec: ScheduleSpec): SchedulePlan {
  refuseUnknown(spec, SCHEDULE_NAMES, 'a schedule')
  if (spec.options !== undefined) refuseUnknown(spec.options, RUN_NAMES, `a schedule's 'options'`)
  const tz = spec.tz ?? spec.timezone ?? 'UTC'
  parseCron(spec.cron, tz)
  const missed = checkOneOf('missed', spec.missed ?? 'one', MISSED_POLICIES)
  const overlap = checkOneOf('overlap', spec.overlap ?? (missed === 'all' ? 'allow' : 'skip'), OVERLAP_POLICIES)
  if (missed === 'all' && overlap === 'skip') {
    throw new OptionError(
      `'missed: all' and 'overlap: skip' contradict each other, because catch-up runs overlap; give one`,
    )
  }
  const [startMs, endMs] = [checkDate('start', spec.start), checkDate('end', spec.end)]
  if (startMs !== null && endMs !== null && endMs < startMs) throw new OptionError(`'end' is before 'start'; swap them`)
  return {
    cron: spec.cron,
    tz,
    startMs,
    endMs,
    limit: checkLimit(spec.limit),
    missed,
    overlap,
    payload: plain('payload', spec.payload ?? null),
    options: plain('options', spec.options ?? {}),
  }
}

export interface ScheduleFault {
  readonly field: 'cron' | 'tz' | 'end' | 'limit' | 'overlap' | 'payload'
  readonly message: string
}

/** Everything that `checkSchedule` would refuse, field by field: a form says all of it at once, each beside its field. */
export function scheduleFaults(spec: ScheduleSpec): readonly ScheduleFault[] {
  const { cron, tz, start, end, limit, missed, overlap, payload } = spec
  const parts: Readonly<Record<ScheduleFault['field'], Partial<ScheduleSpec>>> = {
    cron: { cron },
    tz: omitUndefined({ tz }),
    end: omitUndefined({ start, end }),
    limit: omitUndefined({ limit }),
    overlap: omitUndefined({ missed, overlap }),
    payload: { payload },
  }
  return Object.entries(parts).flatMap(([field, part]) => {
    try {
      checkSchedule({ cron: EVERY_MINUTE, ...part })
      return []
    } catch (error) {
      if (!isMillraceError(error, 'ERR_OPTION_INVALID')) throw error
      // The names of exactly this table.
      return [{ field: field as ScheduleFault['field'], message: error.message }]
    }
  })
}

/** Stands for the times where another field is looked at. */
const EVERY_MINUTE = '* * * * *'

export function checkDeclared(type: string, declared: DeclaredSchedule): SchedulePlan & { readonly name: string } {
  const { name = type, ...spec }: ScheduleSpec & { readonly name?: string } =
    typeof declared === 'string' ? { cron: declared } : declared
  return { ...checkSchedule(spec), name: checkScheduleName(name) }
}

function checkOneOf<Value extends string>(name: string, value: Value, known: readonly Value[]): Value {
  if (known.includes(value)) return value
  throw new OptionError(`'${name}' is '${value}'; give one of ${known.join(', ')}`)
}

function checkDate(name: string, date: Date | undefined): number | null {
  if (date === undefined) return null
  const ms = date instanceof Date ? date.getTime() : Number.NaN
  if (Number.isFinite(ms)) return ms
  throw new OptionError(`'${name}' is not a valid date; give a Date`)
}

function checkLimit(limit: number | undefined): number | null {
  if (limit === undefined) return null
  if (Number.isSafeInteger(limit) && limit >= 1) return limit
  throw new OptionError(`'limit' is ${limit}; give a whole number of runs from 1`)
}

/** The value as it will be read from the store. */
function plain<Value>(name: string, value: Value): Value {
  const loss = findLoss(value)
  if (loss !== null)
    throw new OptionError(
      `'${name}' of a schedule has ${loss.what}${loss.path && ` at '${loss.path}'`}, which JSON cannot keep`,
    )
  const text = JSON.stringify(value)
  if (text !== undefined) return JSON.parse(text)
  throw new OptionError(`'${name}' of a schedule must be JSON, because it is stored`)
}
