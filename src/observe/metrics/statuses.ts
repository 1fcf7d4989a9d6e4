import type { Counter } from 'prom-client'
import type { MetricParts } from './instrument.ts'
import { METRIC_NAMES } from './names.ts'

/** X069: what happens to attempts. One that fails is `failed`, and `retried` or `dead` besides. */
const STATUSES = Object.freeze({
  started: { name: METRIC_NAMES.jobsStarted, help: 'Attempts started' },
  completed: { name: METRIC_NAMES.jobsCompleted, help: 'Jobs completed' },
  failed: { name: METRIC_NAMES.jobsFailed, help: 'Attempts failed, whether retried or the last' },
  retried: { name: METRIC_NAMES.jobsRetried, help: 'Failed attempts after which another one follows' },
  dead: { name: METRIC_NAMES.jobsDead, help: 'Jobs that became dead letters' },
})
type Status = keyof typeof STATUSES

/** Of one type. Counting costs an addition; the registry, where it costs much more, is told when it is collected. */
export type StatusCounts = Record<Status, number>

export interface Statuses {
  /** To be added to. */
  of(type: string): StatusCounts
  /** Tells the registry what was counted since the last time. */
  tell(): void
}

/** Each status is counted by itself and among all of them. */
export function countStatuses({ prom, registry, prefix }: Pick<MetricParts, 'prom' | 'registry' | 'prefix'>): Statuses {
  const registers = [registry]
  const counter = (
    name: string,
    help: string,
    labelNames: readonly ('type' | 'status')[],
  ): Counter<'type' | 'status'> => new prom.Counter({ name: prefix + name, help, labelNames, registers })
  const total = counter(METRIC_NAMES.jobsTotal, 'Total jobs processed', ['type', 'status'])
  // The keys of the table are the statuses.
  const each = (Object.keys(STATUSES) as Status[]).map((status) => {
    const { name, help } = STATUSES[status]
    return { status, own: counter(name, help, ['type']) }
  })
  const counts = new Map<string, StatusCounts>()
  const tellOf = (type: string, counted: StatusCounts): void => {
    for (const { status, own } of each) {
      own.inc({ type }, counted[status])
      total.inc({ type, status }, counted[status])
      counted[status] = 0
    }
  }
  return {
    of(type) {
      const found = counts.get(type)
      if (found !== undefined) return found
      const fresh = { started: 0, completed: 0, failed: 0, retried: 0, dead: 0 }
      counts.set(type, fresh)
      return fresh
    },
    tell() {
      for (const [type, counted] of counts) tellOf(type, counted)
    },
  }
}
