import { setTimeout as sleep } from 'node:timers/promises'
import type { Mixing } from '../contender.ts'
import { Ledger } from '../ledger.ts'
import { handleMixed, isPlanned, MIXED_TYPES, type MixedPayload, mixedJob, Planned } from '../mixture.ts'
import { inBatches, sharedNowMs } from '../payload.ts'
import { ratioOf, type Scenario, type Scene, type Target } from '../scenario.ts'
import { percentile } from '../statistics.ts'
import { errorFaults, steadyRate } from './draining.ts'

const SENT_PER_SECOND = 200
const STEP_MS = 5
const AT_ONCE = 100

function mixingOf(scene: Scene): Mixing {
  if (scene.contender.mixing === undefined) throw new Error('this contender has no mixture of jobs')
  return scene.contender.mixing
}

/** Jobs that are sent while the worker has hardly anything to do; a tenth before them is not counted. */
const sentOf = ({ sizes }: Scene): number => Math.ceil(sizes.mixed / 2)

/** The producer: another process that sends at its own pace, whether the last call has answered or not. */
async function produce(scene: Scene): Promise<void> {
  const { enqueue, lacks } = mixingOf(scene)
  const first = scene.sizes.mixed
  const count = sentOf(scene)
  const startedMs = performance.now()
  const answers: Promise<void>[] = []
  while (answers.length < count) {
    const due = Math.min(count, Math.ceil(((performance.now() - startedMs) / 1_000) * SENT_PER_SECOND))
    while (answers.length < due) answers.push(enqueue(mixedJob(first + answers.length, sharedNowMs(), lacks)))
    await sleep(STEP_MS)
  }
  await Promise.all(answers)
}

/** What arrived, and how. */
class Arrivals {
  readonly ledger: Ledger
  /** Of first attempts. */
  readonly startedMs: number[] = []
  readonly waitedMs: number[] = []
  readonly #failed = new Set<number>()
  readonly #warmup: number
  #computed = 0
  #cpuBefore = process.cpuUsage()

  constructor(count: number, warmup: number) {
    this.ledger = new Ledger(count)
    this.#warmup = warmup
  }

  /** Processor time of this process since the warm-up without that of handlers, for one first attempt since then. */
  get overheadMs(): number {
    const { user, system } = process.cpuUsage(this.#cpuBefore)
    return ((user + system) / 1_000 - this.#computed) / (this.startedMs.length - this.#warmup)
  }

  get failed(): number {
    return this.#failed.size
  }

  async handle(payload: MixedPayload, countsFrom: number): Promise<void> {
    const isSecond = this.#failed.has(payload.n)
    if (!isSecond && this.startedMs.push(performance.now()) === this.#warmup) {
      this.#cpuBefore = process.cpuUsage()
      this.#computed = 0
    }
    if (!isSecond && payload.t > 0 && payload.n >= countsFrom) this.waitedMs.push(sharedNowMs() - payload.t)
    await handleMixed(payload)
    if (!payload.waits) this.#computed += 1
    if (payload.fails && !isSecond) {
      this.#failed.add(payload.n)
      throw new Planned()
    }
    this.ledger.deliver(payload.n)
  }
}

async function fill(scene: Scene): Promise<void> {
  const { enqueue, lacks } = mixingOf(scene)
  const numbers = Array.from({ length: scene.sizes.mixed }, (_, n) => n)
  for (const batch of inBatches(numbers, AT_ONCE)) await Promise.all(batch.map((n) => enqueue(mixedJob(n, 0, lacks))))
}

function failing(scene: Scene, count: number): number {
  const { lacks } = mixingOf(scene)
  return Array.from({ length: count }, (_, n) => mixedJob(n, 0, lacks)).filter(({ payload }) => payload.fails).length
}

const faster = (family: Target['family'], ours: string, peer: string, title: string): readonly Target[] => [
  {
    family,
    text: `real work done ≥ 1 × ${title}`,
    bound: '≥',
    limit: 1,
    unit: '×',
    measured: (figure) => ratioOf(figure(ours, 'rate'), figure(peer, 'rate')),
  },
  {
    family,
    text: `p99 of waiting in real work ≤ 1 × ${title}`,
    bound: '≤',
    limit: 1,
    unit: '×',
    measured: (figure) => ratioOf(figure(ours, 'p99'), figure(peer, 'p99')),
  },
]

export const work: Scenario = {
  name: 'work',
  title: 'Real work',
  explanation: `Jobs of ${MIXED_TYPES} types with payloads of 10 kB: half of the handlers wait for 5 ms, half hash as much text as the processor does in 1 ms. One job in a hundred fails at its first attempt and is retried, 5 in a hundred are sent with a delay of up to half a second, one fifth is urgent and one fifth can wait. First a worker drains 1 500 of them: the rate counts first attempts after a tenth, and the overhead is the processor time of the worker's process for one of them besides that of the handlers. Then another process sends ${SENT_PER_SECOND} in a second, at its own pace; waiting is measured from when the job was due to the start of its first attempt. Every attempt is counted.`,
  metrics: [
    { key: 'rate', title: 'rate', unit: '/s' },
    { key: 'overhead', title: 'overhead for a job', unit: 'ms' },
    { key: 'p50', title: 'waiting, p50', unit: 'ms' },
    { key: 'p99', title: 'waiting, p99', unit: 'ms', tail: true },
  ],
  targets: [
    ...faster('sqlite', 'millrace-full', 'plainjob', 'plainjob'),
    ...faster('postgres', 'millrace-postgres', 'graphile-worker', 'graphile-worker'),
    ...faster('postgres', 'millrace-postgres', 'graphile-worker-tuned', 'graphile-worker with its local queue'),
    ...faster('postgres', 'millrace-postgres', 'pg-boss', 'pg-boss'),
    ...faster('redis', 'millrace-redis', 'bullmq', 'BullMQ'),
  ],
  families: ['sqlite', 'postgres', 'redis'],
  roundsMax: 2,
  async measure(scene) {
    const { sizes } = scene
    const mixing = mixingOf(scene)
    const count = sizes.mixed + sentOf(scene)
    const warmup = Math.ceil(sizes.mixed / 10)
    const arrivals = new Arrivals(count, warmup)
    const errors: unknown[] = []
    await scene.start('fill').ended
    const working = await mixing.work({
      concurrency: sizes.concurrency,
      onJob: (payload) => arrivals.handle(payload, sizes.mixed + Math.ceil(sentOf(scene) / 10)),
      onError: (error) => {
        if (!isPlanned(error)) errors.push(error)
      },
    })
    await arrivals.ledger.reach(sizes.mixed, sizes.stallMs)
    const overhead = arrivals.overheadMs
    const rate = steadyRate(arrivals.startedMs, warmup)
    await scene.start('produce').ended
    await arrivals.ledger.reach(count, sizes.stallMs)
    await working.stop()
    const faults = [...arrivals.ledger.faults(), ...errorFaults(errors)]
    const planned = failing(scene, count)
    if (arrivals.failed !== planned) faults.push(`${arrivals.failed} of ${planned} jobs failed at first, as planned`)
    const { waitedMs } = arrivals
    return { values: { rate, overhead, p50: percentile(waitedMs, 50), p99: percentile(waitedMs, 99) }, faults }
  },
  parts: { fill, produce },
}
