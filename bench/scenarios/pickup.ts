import { setTimeout as sleep } from 'node:timers/promises'
import { seededRandom } from '../../src/testing/open-for-test.ts'
import { Ledger } from '../ledger.ts'
import { makePayload, sharedNowMs } from '../payload.ts'
import { ratioOf, type Scenario, type Scene } from '../scenario.ts'
import { percentile } from '../statistics.ts'
import { errorFaults } from './draining.ts'

const WARMUP = 20
const GAP_MS_MIN = 5
const GAP_MS_MAX = 20

/** The producer: another process, which knows nothing of the worker but the place. */
async function produce(scene: Scene): Promise<void> {
  const { contender, sizes } = scene
  const random = seededRandom(sizes.seed)
  for (let n = 0; n < WARMUP + sizes.pickups; n += 1) {
    await sleep(GAP_MS_MIN + random() * (GAP_MS_MAX - GAP_MS_MIN))
    await contender.enqueueOne(makePayload(n, sharedNowMs()))
  }
}

// A06
export const pickup: Scenario = {
  name: 'pickup',
  title: 'Pickup from another process',
  explanation:
    'Another process enqueues jobs one by one, 5 to 20 ms apart, into a store whose worker has nothing else to do. Measured from before the call to enqueue, so its commit is included, to the start of the handler.',
  metrics: [
    { key: 'p50', title: 'p50', unit: 'ms' },
    { key: 'p95', title: 'p95', unit: 'ms', tail: true },
    { key: 'p99', title: 'p99', unit: 'ms', tail: true },
  ],
  targets: [
    {
      family: 'sqlite',
      text: 'pickup from another process p50 < 5 ms',
      bound: '<',
      limit: 5,
      unit: 'ms',
      measured: (figure) => figure('millrace-full', 'p50'),
    },
    {
      family: 'sqlite',
      text: 'pickup from another process p99 < 30 ms',
      bound: '<',
      limit: 30,
      unit: 'ms',
      measured: (figure) => figure('millrace-full', 'p99'),
    },
    {
      family: 'postgres',
      text: 'pickup from another process on Postgres p99 ≤ 20 ms',
      bound: '≤',
      limit: 20,
      unit: 'ms',
      measured: (figure) => figure('millrace-postgres', 'p99'),
    },
    {
      family: 'redis',
      text: 'pickup from another process on Redis p50 ≤ 1 × BullMQ',
      bound: '≤',
      limit: 1,
      unit: '×',
      measured: (figure) => ratioOf(figure('millrace-redis', 'p50'), figure('bullmq', 'p50')),
    },
    {
      family: 'redis',
      text: 'pickup from another process on Redis p99 ≤ 1 × BullMQ',
      bound: '≤',
      limit: 1,
      unit: '×',
      measured: (figure) => ratioOf(figure('millrace-redis', 'p99'), figure('bullmq', 'p99')),
    },
    {
      family: 'postgres',
      text: 'pickup from another process on Postgres p50 < 1 × graphile-worker',
      bound: '<',
      limit: 1,
      unit: '×',
      measured: (figure) => ratioOf(figure('millrace-postgres', 'p50'), figure('graphile-worker', 'p50')),
    },
    {
      family: 'postgres',
      text: 'pickup from another process on Postgres p99 < 1 × graphile-worker',
      bound: '<',
      limit: 1,
      unit: '×',
      measured: (figure) => ratioOf(figure('millrace-postgres', 'p99'), figure('graphile-worker', 'p99')),
    },
    {
      family: 'postgres',
      text: 'pickup from another process on Postgres p50 ≤ 3 ms',
      bound: '≤',
      limit: 3,
      unit: 'ms',
      measured: (figure) => figure('millrace-postgres', 'p50'),
    },
    {
      family: 'kafka',
      text: 'pickup from another process on Kafka p50 ≤ 20 ms',
      bound: '≤',
      limit: 20,
      unit: 'ms',
      measured: (figure) => figure('millrace-kafka', 'p50'),
    },
  ],
  async measure(scene) {
    const { contender, sizes } = scene
    const count = WARMUP + sizes.pickups
    const ledger = new Ledger(count)
    const tookMs: number[] = []
    const errors: unknown[] = []
    const working = await contender.work({
      concurrency: sizes.concurrency,
      onJob: (payload) => {
        const nowMs = sharedNowMs()
        ledger.deliver(payload.n)
        if (payload.n >= WARMUP) tookMs.push(nowMs - payload.t)
      },
      onError: (error) => errors.push(error),
    })
    const producer = scene.start('produce')
    await producer.ended
    await ledger.reach(count, sizes.stallMs)
    await working.stop()
    const values = { p50: percentile(tookMs, 50), p95: percentile(tookMs, 95), p99: percentile(tookMs, 99) }
    const faults = [...ledger.faults(), ...errorFaults(errors)]
    return { values, faults }
  },
  parts: { produce },
}
