import { defineJob } from '../job/definition.ts'
import type { NewJob } from '../job/job.ts'
import type { ScheduleParts } from './parts.ts'
import { runId } from './run-id.ts'
import type { Declaration, TypeDefaults } from './schedule.ts'

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
