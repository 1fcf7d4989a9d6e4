import { addCounts, NO_JOBS } from '../engine/counts.ts'
import type { Counts, TypeCounts } from '../engine/engine.ts'
import type { JobView } from '../job/job.ts'
import { formatDuration } from '../time/duration.ts'
import { toIso } from '../time/iso.ts'
import { type Column, printable, type Style } from './terminal.ts'

export { formatDuration }

export function formatTime(ms: number | null): string {
  if (ms === null) return '-'
  return Number.isFinite(ms) ? toIso(ms) : 'unreadable'
}

export function styleOf(view: JobView): Style {
  switch (view.state) {
    case 'queued':
      return 'blue'
    case 'in_progress':
      return 'cyan'
    case 'completed':
      return 'green'
    case 'failed':
      return 'yellow'
    case 'dead_letter':
      return 'red'
    case 'cancelled':
    case 'superseded':
    case 'discarded':
      return 'magenta'
    default:
      view.state satisfies never
      return 'dim'
  }
}

/** A log does not keep how often a record was started before it was settled. */
export function triesOf({ state, attempt, attempts }: JobView, between = '/'): string {
  return `${attempt === 0 && state === 'completed' ? '-' : attempt}${between}${attempts}`
}

/** The job itself does not know whether its predecessors are done. */
function turnOf({ after }: JobView): string {
  if (after === null) return 'due now'
  return after.ids.length === 1 ? `after ${after.ids[0]}` : `after ${after.ids.length} jobs`
}

/** The most useful fact about a job in its state: when it is due, its progress, why it failed. */
export function detailOf(view: JobView, nowMs: number): string {
  const error = view.error === null ? '' : printable(view.error.message)
  if (view.state === 'queued') {
    if (!Number.isFinite(view.runAtMs)) return 'never due: its time cannot be read'
    if (!Number.isInteger(view.priority)) return 'never due: its priority is not a whole number'
    const due = view.runAtMs > nowMs ? `due in ${formatDuration(view.runAtMs - nowMs)}` : turnOf(view)
    return error === '' ? due : `${due}, after: ${error}`
  }
  if (view.state === 'in_progress') {
    const progress = view.progress === null || view.progress === undefined ? '' : JSON.stringify(view.progress)
    return [`by ${view.leaseOwner ?? '?'}`, printable(progress)].filter((part) => part !== '').join(' ')
  }
  if (view.state === 'completed' && view.durationMs !== null) return `took ${formatDuration(view.durationMs)}`
  return error
}

/** Counts by state, as `stats`, `top` and the tour show them. */

const STATES: readonly { readonly title: string; readonly name: keyof TypeCounts; readonly style: Style }[] = [
  { title: 'READY', name: 'ready', style: 'blue' },
  { title: 'DELAYED', name: 'delayed', style: 'blue' },
  { title: 'RUNNING', name: 'inProgress', style: 'cyan' },
  { title: 'COMPLETED', name: 'completed', style: 'green' },
  { title: 'DEAD', name: 'dead', style: 'red' },
]

export const COUNT_COLUMNS: readonly Column[] = STATES.map(({ title }) => ({ title, align: 'right' }))

export function countCells(of: TypeCounts, paint: (style: Style, text: string) => string): readonly string[] {
  return STATES.map(({ name, style }) => paint(of[name] === 0 ? 'dim' : style, String(of[name])))
}

export function totalOf(counts: Counts): TypeCounts {
  return Object.values(counts).reduce(addCounts, NO_JOBS)
}
