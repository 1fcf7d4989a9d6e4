import { ratioOf, type Scenario, type Scene } from '../scenario.ts'
import { drain, enqueueTimed, rateOfAll, steadyRate } from './draining.ts'
import { closeGate, keepGate } from './gate.ts'

// A07 X071
export const drained: Scenario = {
  name: 'drain',
  title: 'Drain',
  explanation:
    'All jobs are enqueued through the call for many, in batches of 1 000; the first batch is not timed. A worker then drains the full queue of jobs that do nothing. Its clock starts when a tenth as many jobs again have been delivered, so that start-up is not counted, and stops at the last delivery; the store is then asked whether anything is left unsettled. On Kafka, where that is over in a fraction of a second, it is done three times in the same process and topic, and the rates are those of all three together. The clock is another one there: the worker handles a tenth as many jobs and waits at an open transaction, behind which all the others stand; the clock starts when that is committed, so that everybody can read them at once, and stops at the last delivery. Until the evening of 18 November 2026 it started as on the other engines. The stream, which parses a whole fetch before it hands out the first record, had then parsed most of them, while Millrace parses a record when its handler can start: Millrace drained 0.44 to 0.60 × as fast as the stream and 1.9 to 2.3 × as fast as kafkajs by that clock, and at 20 thousand jobs 0.57 to 0.74 × and 0.75 to 0.87 ×.',
  metrics: [
    { key: 'rate', title: 'drained', unit: '/s' },
    { key: 'bulk', title: 'enqueued in bulk', unit: '/s' },
  ],
  targets: [
    {
      family: 'sqlite',
      text: 'drained with synchronous=FULL ≥ 4 × plainjob',
      bound: '≥',
      limit: 4,
      unit: '×',
      measured: (figure) => ratioOf(figure('millrace-full', 'rate'), figure('plainjob', 'rate')),
    },
    {
      family: 'postgres',
      text: 'drained on Postgres ≥ 1.5 × graphile-worker with its local queue',
      bound: '≥',
      limit: 1.5,
      unit: '×',
      measured: (figure) => ratioOf(figure('millrace-postgres', 'rate'), figure('graphile-worker-tuned', 'rate')),
    },
    {
      family: 'postgres',
      text: 'drained on Postgres ≥ 0.7 × the bare store',
      bound: '≥',
      limit: 0.7,
      unit: '×',
      measured: (figure) => ratioOf(figure('millrace-postgres', 'rate'), figure('bare-postgres', 'rate')),
    },
    {
      family: 'redis',
      text: 'drained on Redis ≥ 1.5 × BullMQ',
      bound: '≥',
      limit: 1.5,
      unit: '×',
      measured: (figure) => ratioOf(figure('millrace-redis', 'rate'), figure('bullmq', 'rate')),
    },
    {
      family: 'kafka',
      text: "drained on Kafka ≥ 0.6 × the client's own stream",
      bound: '≥',
      limit: 0.6,
      unit: '×',
      measured: (figure) => ratioOf(figure('millrace-kafka', 'rate'), figure('kafka-stream', 'rate')),
    },
    {
      family: 'kafka',
      text: 'drained on Kafka ≥ 1.5 × kafkajs',
      bound: '≥',
      limit: 1.5,
      unit: '×',
      measured: (figure) => ratioOf(figure('millrace-kafka', 'rate'), figure('kafkajs', 'rate')),
    },
    {
      family: 'sqlite',
      text: 'bulk enqueue with synchronous=FULL ≥ 1 × plainjob',
      bound: '≥',
      limit: 1,
      unit: '×',
      measured: (figure) => ratioOf(figure('millrace-full', 'bulk'), figure('plainjob', 'bulk')),
    },
    {
      family: 'sqlite',
      text: 'bulk enqueue with synchronous=NORMAL ≥ 1 × plainjob',
      bound: '≥',
      limit: 1,
      unit: '×',
      measured: (figure) => ratioOf(figure('millrace-normal', 'bulk'), figure('plainjob', 'bulk')),
    },
    {
      family: 'redis',
      text: 'bulk enqueue on Redis ≥ 1 × BullMQ',
      bound: '≥',
      limit: 1,
      unit: '×',
      measured: (figure) => ratioOf(figure('millrace-redis', 'bulk'), figure('bullmq', 'bulk')),
    },
  ],
  async measure(scene) {
    const drained = Math.min(scene.sizes.drained, scene.contender.drainedMax ?? scene.sizes.drained)
    const warmup = Math.ceil(drained / 10)
    const count = warmup + drained
    const [bulks, rates, faults]: [number[], number[], string[]] = [[], [], []]
    const drainOnce = isLog(scene) ? drainGated : drainWhole
    for (let turn = 0; turn < scene.sizes.drains; turn += 1) {
      const { bulk, rate, ...drained } = await drainOnce(scene, { count, warmup, from: turn * count })
      bulks.push(bulk)
      rates.push(rate)
      faults.push(...drained.faults)
    }
    return { values: { rate: rateOfAll(rates), bulk: rateOfAll(bulks) }, faults }
  },
  parts: { gate: keepGate },
}

interface Turn {
  readonly count: number
  /** The first of them. */
  readonly warmup: number
  readonly from: number
}

interface DrainedTurn {
  readonly bulk: number
  readonly rate: number
  readonly faults: readonly string[]
}

/** A log can be read much faster than it is parsed: a peer that parses ahead would have done most before its clock starts. */
function isLog({ place }: Scene): boolean {
  return place.url?.startsWith('kafka:') ?? false
}

async function drainWhole(scene: Scene, { count, warmup, from }: Turn): Promise<DrainedTurn> {
  const bulk = await enqueueTimed(scene, count, from)
  const { arrivedMs, faults } = await drain(scene, count, from)
  return { bulk, rate: steadyRate(arrivedMs, warmup), faults }
}

async function drainGated(scene: Scene, { count, warmup, from }: Turn): Promise<DrainedTurn> {
  await enqueueTimed(scene, warmup, from)
  const gate = await closeGate(scene, from + warmup)
  const ahead = warmup + gate.jobs
  const bulk = await enqueueTimed(scene, count - ahead, from + ahead)
  const { arrivedMs, openedMs, faults } = await drain(scene, count, from, { warmup, gate })
  return { bulk, rate: steadyRate(arrivedMs, warmup, openedMs), faults }
}
