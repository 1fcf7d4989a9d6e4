import { makePayload } from '../payload.ts'
import { ratioOf, type Scenario } from '../scenario.ts'
import { percentile } from '../statistics.ts'
import { drain } from './draining.ts'

const WARMUP = 200

// B172
export const enqueue: Scenario = {
  name: 'enqueue',
  title: 'Enqueue one by one',
  explanation:
    'Jobs (10 thousand on SQLite, 2 thousand on Postgres and Redis, 5 thousand on Kafka) are enqueued singly, each after the one before was acknowledged. All are then delivered and checked.',
  metrics: [
    { key: 'rate', title: 'rate', unit: '/s' },
    { key: 'p50', title: 'p50', unit: 'ms' },
    { key: 'p95', title: 'p95', unit: 'ms', tail: true },
    { key: 'p99', title: 'p99', unit: 'ms', tail: true },
  ],
  targets: [
    {
      family: 'sqlite',
      text: 'enqueue one by one with synchronous=NORMAL ≥ 0.8 × plainjob',
      bound: '≥',
      limit: 0.8,
      unit: '×',
      measured: (figure) => ratioOf(figure('millrace-normal', 'rate'), figure('plainjob', 'rate')),
    },
    {
      family: 'sqlite',
      text: 'enqueue p95 < 10 ms with synchronous=FULL',
      bound: '<',
      limit: 10,
      unit: 'ms',
      measured: (figure) => figure('millrace-full', 'p95'),
    },
    {
      family: 'postgres',
      text: 'enqueue one by one on Postgres ≥ 1 × graphile-worker',
      bound: '≥',
      limit: 1,
      unit: '×',
      measured: (figure) => ratioOf(figure('millrace-postgres', 'rate'), figure('graphile-worker', 'rate')),
    },
    {
      family: 'redis',
      text: 'enqueue one by one on Redis ≥ 1 × BullMQ',
      bound: '≥',
      limit: 1,
      unit: '×',
      measured: (figure) => ratioOf(figure('millrace-redis', 'rate'), figure('bullmq', 'rate')),
    },
  ],
  async measure(scene) {
    const { contender, sizes } = scene
    const count = sizes.singles
    for (let n = 0; n < WARMUP; n += 1) await contender.enqueueOne(makePayload(n))
    const tookMs: number[] = []
    const startedMs = performance.now()
    for (let n = WARMUP; n < WARMUP + count; n += 1) {
      const payload = makePayload(n)
      const beforeMs = performance.now()
      await contender.enqueueOne(payload)
      tookMs.push(performance.now() - beforeMs)
    }
    const rate = (count / (performance.now() - startedMs)) * 1_000
    const { faults } = await drain(scene, WARMUP + count)
    const values = { rate, p50: percentile(tookMs, 50), p95: percentile(tookMs, 95), p99: percentile(tookMs, 99) }
    return { values, faults }
  },
}
