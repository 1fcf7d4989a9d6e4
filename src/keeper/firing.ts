import { randomUUID } from 'node:crypto'
import { schedulesOf } from '../engine/admission.ts'
import type { ScheduleRecord } from '../engine/schedules.ts'
import type { ScheduleParts } from './parts.ts'
import { prepareTicks } from './runs.ts'
import { readState, type ScheduleState } from './schedule.ts'
import { dueTicks, nextTick, tickAfterSetBack } from './ticks.ts'

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
  }
  const next = { name, revision: randomUUID(), nextAtMs: nextTick(after, seenMs), body: JSON.stringify(after) }
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

/** Lets a schedule go on after the clock was set back. Answers with the record as it is now, or null as `fire` does. */
export async function setBack(parts: ScheduleParts, record: ScheduleRecord): Promise<ScheduleRecord | null> {
  const { clock, engine, events } = parts
  if (record.nextAtMs === null) return record
  const state = readState(record)
  const nextAtMs = tickAfterSetBack(state, record.nextAtMs, clock.nowMs())
  if (nextAtMs === null) return record
  const after: ScheduleState = { ...state, setBacks: (state.setBacks ?? 0) + 1 }
  const next = { name: record.name, revision: randomUUID(), nextAtMs, body: JSON.stringify(after) }
  if ((await schedulesOf(engine).save(next, record.revision, [])) === null) return null
  events.emit('schedule.changed', { name: record.name, change: 'set back with the clock' })
  return next
}

/** Whether the run before is still waiting or running, and this schedule's runs may not overlap (X066). */
async function overlaps({ engine }: ScheduleParts, state: ScheduleState): Promise<boolean> {
  if (state.overlap === 'allow' || state.lastJobId === null) return false
  const [last] = (await engine.inspector?.find([state.lastJobId])) ?? []
  return last?.state === 'queued' || last?.state === 'in_progress'
}
