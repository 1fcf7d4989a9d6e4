import { schedulesOf } from '../engine/capability-checks.ts'
import type { Engine, Receipt } from '../engine/engine.ts'
import type { ScheduleRecord } from '../engine/schedules.ts'
import { OptionError, UnknownScheduleError, UnsupportedError } from '../errors.ts'
import type { AnyJob } from '../job/definition.ts'
import type { NewJob } from '../job/job.ts'
import { refuseUnknown } from '../job/known-options.ts'
import { checkSchedule, checkScheduleName, type SchedulePlan, type ScheduleSpec } from '../job/schedule.ts'
import { checkPreviewCount, parseCron } from '../time/cron.ts'
import { type Duration, parseDurationMs } from '../time/duration.ts'
import type { ScheduleParts } from './parts.ts'
import { withTicks } from './past-ticks.ts'
import {
  busy,
  type Declaration,
  defaultsOf,
  overdueSchedules,
  readState,
  recordOf,
  SAVE_TRIES,
  type ScheduleState,
  type ScheduleView,
  type TypeDefaults,
  toView,
  toViewOrNull,
} from './schedule-state.ts'
import { nextTick, prepareRun } from './schedule-ticks.ts'

/** A schedule of any type, known by its name. */
export interface NamedSchedule extends ScheduleSpec {
  readonly name: string
  readonly type: string
}

type TypedSpec = ScheduleSpec & { readonly type: string | AnyJob }

interface Change {
  readonly state: ScheduleState
  readonly nextAtMs: number | null
  readonly jobs?: readonly NewJob[]
}

const PREVIEW_COUNT = 10

export function freshState(declaration: Declaration, defaults: TypeDefaults | null): ScheduleState {
  const { type, ...plan } = declaration
  const nothing = {
    paused: false,
    runs: 0,
    skips: 0,
    missedTicks: 0,
    lastTickMs: null,
    lastJobId: null,
    past: [],
    declared: null,
  }
  return { ...plan, type, defaults, ...nothing }
}

/** Refuses what the engine could not keep: whether the run before is still live can only be looked up. */
export function admitSchedule(engine: Engine, { overlap }: Pick<SchedulePlan, 'overlap'>): void {
  schedulesOf(engine)
  if (overlap === 'allow' || engine.inspector !== undefined) return
  const limit = `cannot look up the run before; give a schedule 'overlap: allow'`
  throw new UnsupportedError({ engine: engine.name, limit })
}

/**
 * The schedules of a mill, as `mill.schedules`. They are stored: a change holds for every process and every restart, and
 * a running keeper takes it over within its interval.
 *
 * @example
 * await mill.schedules.upsert('nightly', { type: 'report', cron: '0 3 * * *', tz: 'Europe/Berlin' })
 */
export class Timetable {
  readonly #parts: ScheduleParts

  constructor(parts: ScheduleParts) {
    this.#parts = parts
  }

  /** Adds a schedule, or changes the one of that name; how often it ran and when it ran last is kept. */
  upsert(name: string, spec: TypedSpec): Promise<ScheduleView> {
    return this.#put(name, spec, () => {})
  }

  /** Adds a schedule, and refuses a name that another has already. */
  add(name: string, spec: TypedSpec): Promise<ScheduleView> {
    return this.#put(name, spec, (before) => {
      if (before !== null) throw taken(name)
    })
  }

  async #put(
    name: string,
    { type: of, ...spec }: TypedSpec,
    admit: (before: ScheduleState | null) => void,
  ): Promise<ScheduleView> {
    const { engine, definitions } = this.#parts
    const type = typeof of === 'string' ? of : of.type
    const known = typeof of === 'string' ? definitions.get(of) : of
    const declaration = { ...checkSchedule(spec), type }
    admitSchedule(engine, declaration)
    const defaults = known === undefined ? null : defaultsOf(known)
    const withThis = known === undefined ? definitions : new Map([...definitions, [type, known]])
    await prepareRun({ ...this.#parts, definitions: withThis }, { ...declaration, defaults })
    return this.#save(checkScheduleName(name), 'saved', (before, nowMs) => {
      admit(before)
      // A process without the definition does not forget what one that has it knew of the type.
      const kept = defaults ?? (before?.type === type ? before.defaults : null)
      const state = { ...(before ?? freshState(declaration, kept)), ...declaration, defaults: kept }
      return { state, nextAtMs: state.paused ? null : nextTick(state, nowMs) }
    })
  }

  /** By name. One that cannot be read is left out. */
  async list(): Promise<readonly ScheduleView[]> {
    const records = await schedulesOf(this.#parts.engine).list()
    return records.map(toViewOrNull).filter((view) => view !== null)
  }

  async find(name: string): Promise<ScheduleView | null> {
    const record = await schedulesOf(this.#parts.engine).find(name)
    return record === null ? null : toView(record)
  }

  /** No runs until it is resumed. */
  pause(name: string): Promise<ScheduleView> {
    return this.#change(name, 'paused', (state) => ({ state: { ...state, paused: true }, nextAtMs: null }))
  }

  /** Goes on with the next tick from now; what was due meanwhile does not run. */
  resume(name: string): Promise<ScheduleView> {
    return this.#change(name, 'resumed', (before, nowMs) => {
      const state = { ...before, paused: false }
      return { state, nextAtMs: nextTick(state, nowMs) }
    })
  }

  /** Runs at other times from now on, with the same payload and options. */
  async reschedule(name: string, cron: string, options: { readonly tz?: string } = {}): Promise<ScheduleView> {
    refuseUnknown(options, { tz: true }, 'reschedule')
    const { tz } = options
    return this.#change(name, 'rescheduled', (before, nowMs) => {
      const state = { ...before, cron, tz: tz ?? before.tz }
      parseCron(cron, state.tz)
      return { state, nextAtMs: state.paused ? null : nextTick(state, nowMs) }
    })
  }

  /** Forgets the schedule; jobs that it has enqueued stay. False when there is none. */
  async unschedule(name: string): Promise<boolean> {
    const removed = await schedulesOf(this.#parts.engine).remove(name)
    if (removed) this.#parts.events.emit('schedule.changed', { name, change: 'removed' })
    return removed
  }

  /** Enqueues a run now, whatever the clock says. It does not count as one of its runs. */
  async runNow(name: string): Promise<Receipt> {
    const record = await this.#known(name)
    const job = await prepareRun(this.#parts, readState(record))
    let receipt: Receipt = { id: job.id, status: 'enqueued' }
    const note = (receipts: readonly Receipt[]): void => {
      receipt = receipts[0] ?? receipt
    }
    const change = (before: ScheduleState | null, nowMs: number, nextAtMs: number | null): Change => {
      if (before === null) throw new UnknownScheduleError(name)
      const past = withTicks(before.past, [{ what: 'run-now', atMs: nowMs, count: 1, jobId: job.id }])
      return { state: { ...before, lastJobId: job.id, past }, nextAtMs, jobs: [job] }
    }
    await this.#save(name, 'run', change, note)
    return receipt
  }

  /**
   * When it would run next, in milliseconds: a stored schedule by its name, or any cron text. Default: the next ten.
   *
   * @example
   * await mill.schedules.preview('0 3 * * MON', { tz: 'Europe/Berlin' })
   */
  async preview(
    of: string,
    { tz, count = PREVIEW_COUNT }: { readonly tz?: string; readonly count?: number } = {},
  ): Promise<readonly number[]> {
    checkPreviewCount(count)
    // A cron text has spaces between its fields, and a name has none.
    const isCron = /\s/.test(of.trim())
    const spec = isCron ? checkSchedule({ cron: of, ...(tz !== undefined && { tz }) }) : await this.#stored(of, tz)
    return upcoming({ runs: 0, ...spec }, this.#parts.clock.nowMs(), count)
  }

  /** Schedules whose tick is late by more than this. Default: 1m. */
  async overdue(tolerance: Duration = '1m'): Promise<readonly ScheduleView[]> {
    return overdueSchedules(await this.list(), this.#parts.clock.nowMs(), parseDurationMs(tolerance, 'tolerance'))
  }

  async #stored(name: string, tz: string | undefined): Promise<ScheduleState> {
    const state = readState(await this.#known(name))
    return { ...state, tz: tz ?? state.tz }
  }

  async #known(name: string): Promise<ScheduleRecord> {
    const record = await schedulesOf(this.#parts.engine).find(name)
    if (record === null) throw new UnknownScheduleError(name)
    return record
  }

  #change(name: string, word: string, change: (state: ScheduleState, nowMs: number) => Change): Promise<ScheduleView> {
    return this.#save(name, word, (before, nowMs) => {
      if (before === null) throw new UnknownScheduleError(name)
      return change(before, nowMs)
    })
  }

  /** Reads, changes and saves, again if somebody else was faster. */
  async #save(
    name: string,
    word: string,
    change: (before: ScheduleState | null, nowMs: number, nextAtMs: number | null) => Change,
    onReceipts: (receipts: readonly Receipt[]) => void = () => {},
  ): Promise<ScheduleView> {
    const { engine, clock, events } = this.#parts
    const schedules = schedulesOf(engine)
    for (let tries = 0; tries < SAVE_TRIES; tries += 1) {
      const record = await schedules.find(name)
      const before = record === null ? null : readState(record)
      const { state, nextAtMs, jobs = [] } = change(before, clock.nowMs(), record?.nextAtMs ?? null)
      const next = recordOf(name, state, nextAtMs)
      const receipts = await schedules.save(next, record?.revision ?? null, jobs)
      if (receipts === null) continue
      onReceipts(receipts)
      events.emit('schedule.changed', { name, change: word })
      return { ...state, name, nextAtMs }
    }
    throw busy(name)
  }
}

export function taken(name: string): OptionError {
  return new OptionError(`a schedule has the name '${name}' already; change that one, or give another name`)
}

/** The next runs of a plan that has had so many. */
export function upcoming(
  plan: SchedulePlan & { readonly runs: number },
  fromMs: number,
  count: number = PREVIEW_COUNT,
): readonly number[] {
  const ticks: number[] = []
  for (let atMs: number | null = fromMs; ticks.length < count; ) {
    atMs = nextTick({ ...plan, runs: plan.runs + ticks.length }, atMs)
    if (atMs === null) break
    ticks.push(atMs)
  }
  return ticks
}
