import type { Instrument, MetricParts } from './instrument.ts'
import { METRIC_NAMES, SCAN_BUCKETS } from './names.ts'

/** Leases that were lost or ran out, and how long it takes to look for the latter. */
export function measureLeases({ prom, registry, prefix, events }: MetricParts): Instrument {
  const registers = [registry]
  const lost = new prom.Counter({
    name: prefix + METRIC_NAMES.leasesLost,
    help: 'Leases that a worker here lost while it held them',
    labelNames: ['type', 'reason'],
    registers,
  })
  const expired = new prom.Counter({
    name: prefix + METRIC_NAMES.leasesExpired,
    help: 'Leases that ran out and were recovered here, by what became of the job',
    labelNames: ['type', 'outcome'],
    registers,
  })
  const pass = new prom.Histogram({
    name: prefix + METRIC_NAMES.reaperPass,
    help: 'How long a look for expired leases took',
    buckets: [...SCAN_BUCKETS],
    registers,
  })
  const detachers = [
    events.on('worker.started', ({ types }) => {
      // A series that begins at 1 hides its first event from `rate`.
      for (const type of types) {
        lost.inc({ type, reason: 'expired' }, 0)
        for (const outcome of ['retry', 'dead']) expired.inc({ type, outcome }, 0)
      }
    }),
    events.on('lease.lost', ({ job, reason }) => lost.inc({ type: job.type, reason })),
    events.on('lease.reaped', ({ job, outcome }) => expired.inc({ type: job.type, outcome: outcome.kind })),
    events.on('reaper.pass', ({ durationMs }) => pass.observe(durationMs)),
  ]
  return {
    collect() {},
    detach() {
      for (const detach of detachers) detach()
    },
  }
}
