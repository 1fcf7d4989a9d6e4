import { NO_JOBS } from '../../engine/counts.ts'
import type { TypeCounts } from '../../engine/engine.ts'
import { presenceIn } from '../../engine/presence.ts'
import type { MillEvents } from '../../events.ts'
import { within } from '../../time/wait.ts'
import { ANSWER_MS, findWithin } from '../observed-mill.ts'
import { attachStats, type EndedStats, queueAge } from '../stats/stats.ts'
import type { Instrument, MetricParts } from './instrument.ts'
import { METRIC_NAMES } from './names.ts'

/** Queue depths, read from the engine at each scrape. Every process of a store reports the same: do not sum them. */
export function measureQueues({ prom, registry, prefix, events, engine, clock }: MetricParts): Instrument {
  const registers = [registry]
  const gauge = (name: string, help: string) =>
    new prom.Gauge({ name: prefix + name, help, labelNames: ['type'], registers })
  const depth = new prom.Gauge({
    name: prefix + METRIC_NAMES.queueDepth,
    help: 'Number of jobs in queue',
    labelNames: ['type', 'state'],
    registers,
  })
  const waiting = gauge(METRIC_NAMES.waitingJobs, 'Due jobs waiting for a worker')
  const delayed = gauge(METRIC_NAMES.delayedJobs, 'Jobs due later or waiting for other jobs')
  const dead = gauge(METRIC_NAMES.deadLetters, 'Dead letters not yet replayed or discarded')
  const age = new prom.Gauge({
    name: prefix + METRIC_NAMES.queueAge,
    help: 'How long the oldest due job has been waiting',
    registers,
  })
  const up = new prom.Gauge({
    name: prefix + METRIC_NAMES.engineUp,
    help: 'Whether the engine answered this scrape',
    registers,
  })
  /** The queue of a type that a worker here runs is 0 when empty, not absent. */
  const worked = new Set<string>()
  const detach = events.on('worker.started', ({ types }) => {
    for (const type of types) worked.add(type)
  })
  const show = (type: string, counts: TypeCounts): void => {
    depth.set({ type, state: 'waiting' }, counts.ready)
    depth.set({ type, state: 'active' }, counts.inProgress)
    depth.set({ type, state: 'delayed' }, counts.delayed)
    waiting.set({ type }, counts.ready)
    delayed.set({ type }, counts.delayed)
    dead.set({ type }, counts.dead)
  }
  const ask = <T>(what: string, answer: () => Promise<T>) => within(clock, ANSWER_MS, what, answer).catch(() => null)
  return {
    async collect() {
      const [counts, ageMs] = await Promise.all([
        ask('counting jobs', () => engine.counts()),
        ask('the oldest job', () => queueAge(engine, clock)),
      ])
      // In one turn of the event loop, so that no scrape sees half of it.
      for (const one of [depth, waiting, delayed, dead]) one.reset()
      if (ageMs === null) age.remove()
      else age.set(ageMs / 1_000)
      up.set(counts === null ? 0 : 1)
      if (counts === null) return
      for (const type of worked) show(type, NO_JOBS)
      for (const [type, found] of Object.entries(counts)) show(type, found)
    },
    detach,
  }
}

type Shown = Exclude<keyof EndedStats, 'processed' | 'completed'>

const HELP: Readonly<Record<Shown, string>> = {
  processingRate: 'Jobs completed here per minute, over the last hour',
  successRate: 'Share of completed jobs among those completed or dead here, over the last hour',
  attemptFailureRate: 'Share of failed attempts among those ended here, over the last hour',
  latencyP50Ms: 'Half of the attempts that completed here in the last hour took no longer',
  latencyP95Ms: '95 % of the attempts that completed here in the last hour took no longer',
  latencyP99Ms: '99 % of the attempts that completed here in the last hour took no longer',
  leaseExpiryRate: 'Expired leases recovered here per minute, over the last hour',
}

/** The rolling stats of this process. Across processes use the counters and histograms instead. */
export function measureStats({ prom, registry, prefix, events, engine, clock }: MetricParts): Instrument {
  const stats = attachStats({ events, engine }, { clock })
  const gauges = Object.entries(HELP).map(([name, help]) => {
    // The keys of the table above.
    const stat = name as Shown
    const settings = { name: prefix + METRIC_NAMES[stat], help, labelNames: ['type'], registers: [registry] }
    return { stat, gauge: new prom.Gauge(settings) }
  })
  return {
    collect() {
      const found = [...stats.endedByType()]
      for (const { stat, gauge } of gauges) {
        gauge.reset()
        for (const [type, ended] of found) gauge.set({ type }, stat.endsWith('Ms') ? ended[stat] / 1_000 : ended[stat])
      }
    },
    detach: () => stats.detach(),
  }
}

interface Running {
  readonly worker: string
  readonly type: string
  count: number
}

/**
 * The jobs that run in this process now: sum them over processes. And the workers of the store, which every process of a
 * store reports alike.
 */
export function measureRunning({ prom, registry, prefix, events, engine, clock }: MetricParts): Instrument {
  const active = new prom.Gauge({
    name: prefix + METRIC_NAMES.activeJobs,
    help: 'Currently active jobs',
    labelNames: ['type'],
    registers: [registry],
  })
  const instances = new prom.Gauge({
    name: prefix + METRIC_NAMES.workerInstances,
    help: 'Workers running on the store, whichever process they are in',
    registers: [registry],
  })
  const workers = new Set<string>()
  /** Their last heartbeat may still be there. */
  const stopped = new Set<string>()
  const types = new Set<string>()
  /** By worker and type: a job abandoned while the store was unreachable is forgotten when its worker stops. */
  const running = new Map<string, Map<string, Running>>()
  let last: Running | null = null
  /** Called twice per job. Most events have the worker and type of the one before. */
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
  /** A loss may be reported after its worker has stopped. */
  const ended = (event: Pick<MillEvents['lease.lost'], 'worker' | 'job' | 'started'>): void => {
    const found = event.started ? find(event.worker, event.job.type) : undefined
    if (found !== undefined) found.count -= 1
  }
  const detach = events.attach({
    'worker.started': (event) => {
      workers.add(event.worker)
      for (const type of event.types) types.add(type)
    },
    'worker.stopped': ({ worker }) => {
      workers.delete(worker)
      stopped.add(worker)
      running.delete(worker)
      last = null
    },
    'job.started': started,
    'job.settled': ended,
    'lease.lost': ended,
  })
  const presence = presenceIn(engine)
  /** Null where the store does not know them, or does not answer. */
  const present = async (): Promise<readonly string[] | null> => {
    if (presence === undefined) return null
    const beats = await findWithin(clock, 'the workers', () => presence.list())
    return beats.ok ? beats.value.map(({ instance }) => instance) : null
  }
  /** How many the store knows by itself, under names of its own, unless heartbeats tell of them. */
  const members = async (): Promise<number | null> => {
    if (engine.workers === undefined || engine.presence !== undefined) return null
    const found = await findWithin(clock, 'the workers', async () => (await engine.workers?.()) ?? [])
    return found.ok ? found.value.length : null
  }
  return {
    async collect() {
      const [heard, known] = await Promise.all([present(), members()])
      for (const worker of stopped) if (heard?.includes(worker) === false) stopped.delete(worker)
      for (const type of types) active.set({ type }, 0)
      for (const byType of running.values()) for (const { type, count } of byType.values()) active.inc({ type }, count)
      // A process that runs no jobs cannot say that nobody does.
      if (heard === null && known === null && types.size === 0) instances.remove()
      else {
        const beating = new Set(heard?.filter((worker) => !stopped.has(worker)))
        const silent = [...workers].filter((worker) => !beating.has(worker)).length
        instances.set(beating.size + Math.max(known ?? 0, silent))
      }
    },
    detach,
  }
}
