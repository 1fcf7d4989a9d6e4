import type { MillEvents } from '../../events.ts'
import type { Instrument, MetricParts } from './instrument.ts'
import { METRIC_NAMES } from './names.ts'

/** The workers of this process and what they run now. Summed over processes it is what all of them run. */
export function measureRunning({ prom, registry, prefix, events }: MetricParts): Instrument {
  const active = new prom.Gauge({
    name: prefix + METRIC_NAMES.activeJobs,
    help: 'Currently active jobs',
    labelNames: ['type'],
    registers: [registry],
  })
  const instances = new prom.Gauge({
    name: prefix + METRIC_NAMES.workerInstances,
    help: 'Workers running in this process',
    registers: [registry],
  })
  const workers = new Set<string>()
  const types = new Set<string>()
  /** Ids by worker and type: what was given up while the store was away is forgotten with its worker at the latest. */
  const running = new Map<string, Map<string, Set<string>>>()
  const open = (worker: string, type: string): Set<string> => {
    const ids = new Set<string>()
    running.set(worker, (running.get(worker) ?? new Map()).set(type, ids))
    types.add(type)
    return ids
  }
  const started = ({ worker, job }: MillEvents['job.started']): void => {
    const ids = running.get(worker)?.get(job.type) ?? open(worker, job.type)
    ids.add(job.id)
  }
  const ended = ({ worker, job }: Pick<MillEvents['lease.lost'], 'worker' | 'job'>): void => {
    running.get(worker)?.get(job.type)?.delete(job.id)
  }
  const detachers = [
    events.on('worker.started', (event) => {
      workers.add(event.worker)
      for (const type of event.types) types.add(type)
    }),
    events.on('worker.stopped', ({ worker }) => {
      workers.delete(worker)
      running.delete(worker)
    }),
    events.on('job.started', started),
    events.on('job.settled', ended),
    events.on('lease.lost', ended),
  ]
  return {
    collect() {
      for (const type of types) active.set({ type }, 0)
      for (const byType of running.values()) for (const [type, ids] of byType) active.inc({ type }, ids.size)
      instances.set(workers.size)
    },
    detach() {
      for (const detach of detachers) detach()
    },
  }
}
