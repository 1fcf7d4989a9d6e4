import type { DeskAction } from '../../engine/dead-letters.ts'
import type { Instrument, MetricParts } from './instrument.ts'
import { METRIC_NAMES } from './names.ts'

/** What was done about dead letters at desks of this mill. */
export function measureLetters({ prom, registry, prefix, events }: MetricParts): Instrument {
  const counter = (name: string, help: string) =>
    new prom.Counter({ name: prefix + name, help, labelNames: ['type'], registers: [registry] })
  const replayed = counter(METRIC_NAMES.jobsReplayed, 'Dead letters put back into the queue')
  const discarded = counter(METRIC_NAMES.jobsDiscarded, 'Dead letters discarded or deleted')
  const counterOf = { replay: replayed, discard: discarded, purge: discarded, undo: null } satisfies Record<
    DeskAction,
    object | null
  >
  const detachers = [
    events.on('worker.started', ({ types }) => {
      for (const type of types) for (const one of [replayed, discarded]) one.inc({ type }, 0)
    }),
    events.on('desk.acted', ({ action, type }) => counterOf[action]?.inc({ type })),
  ]
  return {
    collect() {},
    detach() {
      for (const detach of detachers) detach()
    },
  }
}
