import type { TypeCounts } from '../../engine/engine.ts'
import { ANSWER_MS, answerWithin } from '../deadline.ts'
import { queueAge } from '../figures/collect.ts'
import type { Instrument, MetricParts } from './instrument.ts'
import { METRIC_NAMES } from './names.ts'

const NOTHING: TypeCounts = Object.freeze({ ready: 0, delayed: 0, inProgress: 0, completed: 0, dead: 0 })

/**
 * How much stands in the store, asked of the engine whenever it is collected. Every process that shares the store says
 * the same, so these are not to be summed over processes.
 */
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
  const waiting = gauge(METRIC_NAMES.waitingJobs, 'Jobs that are due and wait for a worker')
  const delayed = gauge(METRIC_NAMES.delayedJobs, 'Jobs that are due later or wait for others')
  const dead = gauge(METRIC_NAMES.deadLetters, 'Dead letters that nobody has replayed or discarded')
  const age = new prom.Gauge({
    name: prefix + METRIC_NAMES.queueAgeMs,
    help: 'For how long the job that has been due longest waits',
    registers,
  })
  const up = new prom.Gauge({
    name: prefix + METRIC_NAMES.engineUp,
    help: 'Whether the engine answered when this was collected',
    registers,
  })
  /** An empty queue is at 0, not absent, as long as a worker here has it. */
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
  const ask = <T>(what: string, answer: () => Promise<T>) =>
    answerWithin(clock, ANSWER_MS, what, answer).catch(() => null)
  return {
    async collect() {
      const [counts, ageMs] = await Promise.all([
        ask('counting jobs', () => engine.counts()),
        ask('the oldest job', () => queueAge(engine, clock)),
      ])
      // In one turn of the event loop, so that nobody sees half of it. Old depths would be lies.
      for (const one of [depth, waiting, delayed, dead]) one.reset()
      if (ageMs === null) age.remove()
      else age.set(ageMs)
      up.set(counts === null ? 0 : 1)
      if (counts === null) return
      for (const type of worked) show(type, NOTHING)
      for (const [type, found] of Object.entries(counts)) show(type, found)
    },
    detach,
  }
}
