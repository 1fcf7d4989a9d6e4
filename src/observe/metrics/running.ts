import type { MillEvents } from '../../events.ts'
import type { Instrument, MetricParts } from './instrument.ts'
import { METRIC_NAMES } from './names.ts'

interface Running {
  readonly worker: string
  readonly type: string
  count: number
}

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
  /** By worker and type: what was given up while the store was away is forgotten with its worker at the latest. */
  const running = new Map<string, Map<string, Running>>()
  let last: Running | null = null
  /** Most events are of the same worker and type as the one before, and this is called twice for every job. */
  const find = (worker: string, type: string): Running | undefined =>
    last?.worker === worker && last.type === type ? last : running.get(worker)?.get(type)
  const open = (worker: string, type: string): Running => {
    const opened = { worker, type, count: 0 }
    running.set(worker, (running.get(worker) ?? new Map<string, Running>()).set(type, opened))
    types.add(type)
    return opened
  }
  const started = ({ worker, job }: MillEvents['job.started']): void => {
    last = find(worker, job.type) ?? open(worker, job.type)
    last.count += 1
  }
  /** A loss may be told after its worker has stopped. */
  const ended = (event: Pick<MillEvents['lease.lost'], 'worker' | 'job' | 'started'>): void => {
    const found = event.started ? find(event.worker, event.job.type) : undefined
    if (found !== undefined) found.count -= 1
  }
  const detachers = [
    events.on('worker.started', (event) => {
      workers.add(event.worker)
      for (const type of event.types) types.add(type)
    }),
    events.on('worker.stopped', ({ worker }) => {
      workers.delete(worker)
      running.delete(worker)
      last = null
    }),
    events.on('job.started', started),
    events.on('job.settled', ended),
    events.on('lease.lost', ended),
  ]
  return {
    collect() {
      for (const type of types) active.set({ type }, 0)
      for (const byType of running.values()) for (const { type, count } of byType.values()) active.inc({ type }, count)
      instances.set(workers.size)
    },
    detach() {
      for (const detach of detachers) detach()
    },
  }
}
