import type { Instrument, MetricParts } from './instrument.ts'
import { METRIC_NAMES } from './names.ts'

/** Ticks for which nothing was enqueued, by keepers of this mill. */
export function measureSchedules({ prom, registry, prefix, events }: MetricParts): Instrument {
  const skipped = new prom.Counter({
    name: prefix + METRIC_NAMES.scheduleTicksSkipped,
    help: 'Ticks of schedules for which no job was enqueued',
    labelNames: ['type', 'reason'],
    registers: [registry],
  })
  const detachers = [
    events.on('worker.started', ({ types }) => {
      for (const type of types) for (const reason of ['overlap', 'missed']) skipped.inc({ type, reason }, 0)
    }),
    events.on('schedule.skipped', ({ type }) => skipped.inc({ type, reason: 'overlap' })),
    events.on('schedule.missed', ({ type, count }) => skipped.inc({ type, reason: 'missed' }, count)),
  ]
  return {
    collect() {},
    detach() {
      for (const detach of detachers) detach()
    },
  }
}
