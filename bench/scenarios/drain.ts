import { ratioOf, type Scenario } from '../scenario.ts'
import { drain, enqueueTimed, rateOfAll, steadyRate } from './draining.ts'

// A07 X071
export const drained: Scenario = {
  name: 'drain',
  title: 'Drain',
  explanation:
    'All jobs are enqueued through the call for many, in batches of 1 000; the first batch is not timed. A worker then drains the full queue of jobs that do nothing. Its clock starts when a tenth as many jobs again have been delivered, so that start-up is not counted, and stops at the last delivery; the store is then asked whether anything is left unsettled. On Kafka, where that is over in a fraction of a second, it is done three times in the same process and topic, and the rates are those of all three together (once only in runs begun before 10:35 UTC on 18 November 2026).',
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
    for (let turn = 0; turn < scene.sizes.drains; turn += 1) {
      bulks.push(await enqueueTimed(scene, count, turn * count))
      const emptied = await drain(scene, count, turn * count)
      rates.push(steadyRate(emptied.arrivedMs, warmup))
      faults.push(...emptied.faults)
    }
    return { values: { rate: rateOfAll(rates), bulk: rateOfAll(bulks) }, faults }
  },
}
