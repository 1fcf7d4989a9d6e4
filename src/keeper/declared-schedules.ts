import { isDeepStrictEqual } from 'node:util'
import { schedulesOf } from '../engine/capability-checks.ts'
import type { ScheduleRecord } from '../engine/schedules.ts'
import { checkSchedule, checkScheduleName } from '../job/schedule.ts'
import type { KeeperParts, ScheduleParts } from './parts.ts'
import {
  busy,
  type Declaration,
  defaultsOf,
  readState,
  recordOf,
  SAVE_TRIES,
  type ScheduleState,
  type TypeDefaults,
} from './schedule-state.ts'
import { nextTick, prepareRun } from './schedule-ticks.ts'
import { admitSchedule, freshState, type NamedSchedule } from './timetable.ts'

/**
 * Stores the schedules that the code declares, and answers with their names. What was changed at run time stays
 * as it is: only what the code itself says differently since it was last stored is taken over.
 */
export async function declareSchedules(parts: KeeperParts, more: readonly NamedSchedule[]): Promise<readonly string[]> {
  const { prepare } = parts
  if (prepare === null) return []
  const declared = [...declarationsOf(parts, more)]
  for (const [name, declaration] of declared) {
    const record = await declareOne({ ...parts, prepare }, name, declaration)
    const { cron, tz } = readState(record)
    parts.events.emit('schedule.registered', { name, type: declaration.type, cron, tz, nextAtMs: record.nextAtMs })
  }
  return declared.map(([name]) => name)
}

function declarationsOf(
  { definitions }: Pick<KeeperParts, 'definitions'>,
  more: readonly NamedSchedule[],
): ReadonlyMap<string, Declaration> {
  const declarations = new Map<string, Declaration>()
  for (const { type, schedule } of definitions.values()) {
    if (schedule === null) continue
    const { name, ...plan } = schedule
    declarations.set(name, { ...plan, type })
  }
  for (const { name, type, ...spec } of more) {
    declarations.set(checkScheduleName(name), { ...checkSchedule(spec), type })
  }
  return declarations
}

async function declareOne(parts: ScheduleParts, name: string, declaration: Declaration): Promise<ScheduleRecord> {
  const { engine, definitions, clock } = parts
  admitSchedule(engine, declaration)
  const schedules = schedulesOf(engine)
  const known = definitions.get(declaration.type)
  const defaults = known === undefined ? null : defaultsOf(known)
  await prepareRun(parts, { ...declaration, defaults })
  for (let tries = 0; tries < SAVE_TRIES; tries += 1) {
    const record = await schedules.find(name)
    const nowMs = clock.nowMs()
    const change =
      record === null
        ? declaredAnew(declaration, defaults, nowMs)
        : redeclare({ state: readState(record), nextAtMs: record.nextAtMs }, declaration, defaults, nowMs)
    if (record !== null && change === null) return record
    if (change === null) continue
    const { state, nextAtMs } = change
    const next = recordOf(name, state, nextAtMs)
    if ((await schedules.save(next, record?.revision ?? null, [])) !== null) return next
  }
  throw busy(name)
}

interface Standing {
  readonly state: ScheduleState
  readonly nextAtMs: number | null
}

function declaredAnew(declaration: Declaration, defaults: TypeDefaults | null, nowMs: number): Standing {
  const state = { ...freshState(declaration, defaults), declared: declaration }
  return { state, nextAtMs: nextTick(state, nowMs) }
}

const FIELDS = ['type', 'cron', 'tz', 'startMs', 'endMs', 'limit', 'missed', 'overlap', 'payload', 'options'] as const
const TIMING: readonly string[] = ['cron', 'tz', 'startMs', 'endMs', 'limit']

/**
 * What becomes of a stored schedule when the code declares it again, or null when that changes nothing. A field is taken
 * over only if the code says something else than it said last, so an operator's change outlives every restart.
 */
export function redeclare(
  { state, nextAtMs }: Standing,
  declaration: Declaration,
  defaults: TypeDefaults | null,
  nowMs: number,
): Standing | null {
  const { declared } = state
  const changed = declared === null ? [] : FIELDS.filter((field) => !same(declared[field], declaration[field]))
  const known = defaults ?? state.defaults
  if (declared !== null && changed.length === 0 && same(known, state.defaults)) return null
  const taken = Object.fromEntries(changed.map((field) => [field, declaration[field]]))
  const after: ScheduleState = { ...state, ...taken, defaults: known, declared: declaration }
  if (!changed.some((field) => TIMING.includes(field))) return { state: after, nextAtMs }
  return { state: after, nextAtMs: after.paused ? null : nextTick(after, nowMs) }
}

/** Both are plain JSON data, in whatever order their fields stand. */
function same(one: unknown, other: unknown): boolean {
  return isDeepStrictEqual(one, other)
}
