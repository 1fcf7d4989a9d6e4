/** Labels of states and conditions, each with its colour and icon. */
import type { JobEvent, JobSummary } from '../api/shapes.ts'
import type { IconName } from './icon.tsx'

export type Tone = 'quiet' | 'wait' | 'run' | 'good' | 'bad' | 'warn'

export interface Label {
  readonly text: string
  readonly tone: Tone
  readonly icon: IconName
}

type Stateful = Pick<JobSummary, 'state'> & Partial<Pick<JobSummary, 'runAtMs'>>

export function stateLabel({ state, runAtMs }: Stateful, nowMs: number): Label {
  switch (state) {
    case 'queued':
      return (runAtMs ?? 0) > nowMs
        ? { text: 'Delayed', tone: 'wait', icon: 'clock' }
        : { text: 'Queued', tone: 'wait', icon: 'queues' }
    case 'in_progress':
      return { text: 'Running', tone: 'run', icon: 'play' }
    case 'completed':
      return { text: 'Completed', tone: 'good', icon: 'check' }
    case 'failed':
      return { text: 'Failed', tone: 'bad', icon: 'cross' }
    case 'dead_letter':
      return { text: 'Dead letter', tone: 'bad', icon: 'dead-letters' }
    case 'cancelled':
      return { text: 'Cancelled', tone: 'quiet', icon: 'cross' }
    case 'superseded':
      return { text: 'Superseded', tone: 'quiet', icon: 'again' }
    case 'discarded':
      return { text: 'Discarded', tone: 'quiet', icon: 'bin' }
    default:
      return { text: state satisfies never, tone: 'quiet', icon: 'dot' }
  }
}

const EVENTS: Readonly<Record<string, Label>> = {
  enqueued: { text: 'Enqueued', tone: 'wait', icon: 'plus' },
  started: { text: 'Started', tone: 'run', icon: 'play' },
  completed: { text: 'Completed', tone: 'good', icon: 'check' },
  failed: { text: 'Failed', tone: 'bad', icon: 'cross' },
  retried: { text: 'Will be retried', tone: 'wait', icon: 'again' },
  dead: { text: 'Became a dead letter', tone: 'bad', icon: 'dead-letters' },
  released: { text: 'Released, no attempt counted', tone: 'wait', icon: 'undo' },
  expired: { text: 'Lease expired: its worker was lost', tone: 'warn', icon: 'warn' },
  cancelled: { text: 'Cancelled', tone: 'quiet', icon: 'cross' },
  superseded: { text: 'Superseded by a newer job', tone: 'quiet', icon: 'again' },
  discarded: { text: 'Discarded', tone: 'quiet', icon: 'bin' },
  replayed: { text: 'Replayed by hand', tone: 'run', icon: 'again' },
}

export function eventLabel({ name }: Pick<JobEvent, 'name'>): Label {
  return EVENTS[name] ?? { text: name, tone: 'quiet', icon: 'dot' }
}

/** The conditions of workers; an unknown one is shown by its name. */
const CONDITIONS: Readonly<Record<string, Label>> = {
  working: { text: 'Working', tone: 'good', icon: 'check' },
  running: { text: 'Running', tone: 'good', icon: 'check' },
  idle: { text: 'Idle', tone: 'good', icon: 'check' },
  stopping: { text: 'Stopping', tone: 'wait', icon: 'pause' },
  late: { text: 'Heartbeat late', tone: 'warn', icon: 'warn' },
  stuck: { text: 'Maybe stuck', tone: 'warn', icon: 'warn' },
  overdue: { text: 'Stopping too long', tone: 'warn', icon: 'warn' },
  missing: { text: 'Missing', tone: 'bad', icon: 'cross' },
}

export function conditionLabel(condition: string): Label {
  return CONDITIONS[condition] ?? { text: condition, tone: 'wait', icon: 'dot' }
}

export function healthLabel(health: 'healthy' | 'degraded' | 'unhealthy'): Label {
  switch (health) {
    case 'healthy':
      return { text: 'Healthy', tone: 'good', icon: 'check' }
    case 'degraded':
      return { text: 'Degraded', tone: 'warn', icon: 'warn' }
    case 'unhealthy':
      return { text: 'Unhealthy', tone: 'bad', icon: 'cross' }
    default:
      return { text: health satisfies never, tone: 'quiet', icon: 'dot' }
  }
}

export function severityTone(severity: string): Tone {
  const level = severity.toLowerCase()
  if (level === 'critical' || level === 'page' || level === 'error') return 'bad'
  return level === 'warning' || level === 'high' ? 'warn' : 'wait'
}

const REFUSALS: Readonly<Record<string, string>> = {
  'replayed-too-often': 'were already replayed too often (tick “even so” to replay them anyway)',
  unreplayable: 'are of unknown origin and can only be discarded',
  critical: 'are of a critical type (tick “even so” to include them)',
  changed: 'had changed meanwhile and were left alone',
}

export const refusalText = (why: string): string => REFUSALS[why] ?? why

/** How often a job was started. A log does not keep it of a record that is settled. */
export function startsOf({ state, attempt }: { readonly state: string; readonly attempt: number }): string {
  return attempt === 0 && state === 'completed' ? '–' : String(attempt)
}
