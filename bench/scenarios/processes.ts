import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { Ledger } from '../ledger.ts'
import { makePayload, sharedNowMs } from '../payload.ts'
import { placeWithin } from '../place.ts'
import type { Companion } from '../process/line.ts'
import type { Scenario, Scene } from '../scenario.ts'
import { enqueueAll, errorFaults, steadyRate } from './draining.ts'

/** Jobs that the processes enqueue themselves while they drain: a user's call is what must never meet a busy file. */
const OWN_JOBS = 100
/** Node's histogram holds the time between two ticks, so the tick itself is taken off. */
const TICK_MS = 2
const REPORT_MS = 25

interface Part {
  readonly arrivals: { readonly n: Float64Array; readonly atMs: Float64Array }
  readonly loopDelayP99Ms: number
  readonly loopDelayMaxMs: number
  readonly busy: number
  readonly errors: readonly string[]
}

function isBusy(error: unknown): boolean {
  return /ERR_STORAGE_BUSY|SQLITE_BUSY|database is locked/.test(
    error instanceof Error ? `${'code' in error ? error.code : ''} ${error.message}` : String(error),
  )
}

/** One of the processes. The jobs it gets first are held until all have theirs, so that all start at once. */
async function work(scene: Scene): Promise<void> {
  const { contender, sizes, line } = scene
  const order = (await line.hear('order')) as { readonly own: readonly number[] }
  const [n, atMs, errors]: [number[], number[], unknown[]] = [[], [], []]
  const holding = Promise.withResolvers<void>()
  const released = Promise.withResolvers<void>()
  let isHeld = true
  const hold = (): Promise<void> => {
    holding.resolve()
    return released.promise
  }
  const arrive = (index: number): void => {
    n.push(index)
    atMs.push(sharedNowMs())
  }
  const working = await contender.work({
    concurrency: sizes.concurrency,
    onJob: (payload) => (isHeld ? hold().then(() => arrive(payload.n)) : arrive(payload.n)),
    onError: (error) => errors.push(error),
  })
  await Promise.race([holding.promise, sleep(sizes.stallMs, undefined, { ref: false })])
  const stop = line.hear('stop')
  line.say('ready')
  await line.hear('go')
  const delay = monitorEventLoopDelay({ resolution: TICK_MS })
  delay.enable()
  // The histogram counts from its second tick: a worker that never let the loop turn would otherwise not be seen.
  await sleep(3 * TICK_MS)
  isHeld = false
  released.resolve()
  const reporting = setInterval(() => line.say('count', n.length), REPORT_MS)
  for (const index of order.own) await contender.enqueueOne(makePayload(index)).catch((error) => errors.push(error))
  await stop
  delay.disable()
  clearInterval(reporting)
  await working.stop()
  const part: Part = {
    arrivals: { n: Float64Array.from(n), atMs: Float64Array.from(atMs) },
    loopDelayP99Ms: Math.max(0, delay.percentile(99) / 1e6 - TICK_MS),
    loopDelayMaxMs: Math.max(0, delay.max / 1e6 - TICK_MS),
    busy: errors.filter(isBusy).length,
    errors: errors.filter((error) => !isBusy(error)).map(String),
  }
  line.say('part', part)
}

/** Resolves when the processes have counted all jobs between them, or when their counts no longer grow. */
async function allCounted(processes: readonly Companion[], count: number, stallMs: number): Promise<void> {
  const counted = processes.map(() => 0)
  const sum = (): number => counted.reduce((total, each) => total + each, 0)
  const done = Promise.withResolvers<void>()
  for (const [index, each] of processes.entries()) {
    each.on('count', (value) => {
      counted[index] = Number(value)
      if (sum() >= count) done.resolve()
    })
  }
  let before = 0
  const watch = setInterval(() => {
    if (sum() === before) done.resolve()
    before = sum()
  }, stallMs)
  await Promise.race([done.promise, ...processes.map((each) => each.ended)])
  clearInterval(watch)
}

interface Together {
  readonly rate: number
  readonly loopDelayP99Ms: number
  readonly loopDelayMaxMs: number
  readonly busy: number
  readonly faults: readonly string[]
}

async function drainWith(scene: Scene, processCount: number): Promise<Together> {
  const { jobs } = scene.sizes
  const count = jobs + OWN_JOBS
  const place = await placeWithin(scene.place)
  await scene.start('load', place).ended
  const processes = Array.from({ length: processCount }, () => scene.start('work', place))
  try {
    for (const [index, each] of processes.entries()) {
      const own = Array.from({ length: OWN_JOBS }, (_, own) => jobs + own).filter((own) => own % processCount === index)
      each.say('order', { own })
    }
    await Promise.all(processes.map((each) => each.hear('ready')))
    for (const each of processes) each.say('go')
    // A peer that never lets the event loop turn cannot report either, until it is through.
    await allCounted(processes, count, 3 * scene.sizes.stallMs)
    for (const each of processes) each.say('stop')
    const parts = await Promise.all(processes.map(async (each) => (await each.hear('part')) as Part))
    await Promise.all(processes.map((each) => each.ended))
    return summarise(parts, count)
  } finally {
    for (const each of processes) each.kill()
  }
}

function summarise(parts: readonly Part[], count: number): Together {
  const ledger = new Ledger(count)
  for (const { arrivals } of parts) for (const n of arrivals.n) ledger.deliver(n)
  const arrivedMs = parts.flatMap(({ arrivals }) => [...arrivals.atMs]).sort((a, b) => a - b)
  const errors = parts.flatMap((part) => part.errors)
  return {
    rate: steadyRate(arrivedMs, Math.ceil(count / 11)),
    loopDelayP99Ms: Math.max(...parts.map((part) => part.loopDelayP99Ms)),
    loopDelayMaxMs: Math.max(...parts.map((part) => part.loopDelayMaxMs)),
    busy: parts.reduce((total, part) => total + part.busy, 0),
    faults: [...ledger.faults(), ...errorFaults(errors)],
  }
}

export const processes: Scenario = {
  name: 'processes',
  title: 'Several processes on one store',
  explanation:
    'One process and then ten (the «several» of the table) drain the same number of jobs, and enqueue a hundred themselves meanwhile. The event-loop delay is the 99th percentile in the process where it is worst, and the longest in any; an error counts as busy when it reached the caller of enqueue or the owner of a worker. Ten processes share the cores of the machine.',
  metrics: [
    { key: 'one', title: '1 process', unit: '/s' },
    { key: 'several', title: 'several processes', unit: '/s' },
    { key: 'kept', title: 'several to one', unit: '×' },
    { key: 'loopDelay', title: 'loop delay p99', unit: 'ms', tail: true },
    { key: 'loopLongest', title: 'longest', unit: 'ms', tail: true },
    { key: 'busy', title: 'busy errors', unit: '', across: 'max' },
  ],
  targets: [
    {
      family: 'sqlite',
      text: '10 processes drain ≥ 0.7 × the rate of one',
      bound: '≥',
      limit: 0.7,
      unit: '×',
      measured: (figure) => figure('millrace-full', 'kept'),
    },
    {
      family: 'sqlite',
      text: 'event-loop delay p99 ≤ 12 ms with 10 processes',
      bound: '≤',
      limit: 12,
      unit: 'ms',
      measured: (figure) => figure('millrace-full', 'loopDelay'),
    },
    {
      family: 'sqlite',
      text: 'no SQLITE_BUSY reaches a user with 10 processes',
      bound: '=',
      limit: 0,
      unit: '',
      measured: (figure) => figure('millrace-full', 'busy'),
    },
  ],
  families: ['sqlite'],
  roundsMax: 2,
  async measure(scene) {
    const alone = await drainWith(scene, 1)
    const many = await drainWith(scene, scene.sizes.processes)
    const values = {
      one: alone.rate,
      several: many.rate,
      kept: many.rate / alone.rate,
      loopDelay: many.loopDelayP99Ms,
      loopLongest: many.loopDelayMaxMs,
      busy: alone.busy + many.busy,
    }
    return { values, faults: [...alone.faults, ...many.faults] }
  },
  parts: { work, load: (scene) => enqueueAll(scene, scene.sizes.jobs) },
}
