import { ratioOf, type Scenario } from '../scenario.ts'
import { drain, enqueueAll, steadyRate } from './draining.ts'

// A07 X071
export const drained: Scenario = {
  name: 'drain',
  title: 'Drain',
  explanation:
    'A worker drains a full queue of jobs that do nothing. The clock starts when a tenth as many jobs again have been delivered, so that start-up is not counted, and stops at the last delivery; the store is then asked whether anything is left unsettled.',
  metrics: [{ key: 'rate', title: 'rate', unit: '/s' }],
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
      text: 'drained on Redis ≥ 1 × BullMQ',
      bound: '≥',
      limit: 1,
      unit: '×',
      measured: (figure) => ratioOf(figure('millrace-redis', 'rate'), figure('bullmq', 'rate')),
    },
  ],
  async measure(scene) {
    const { drained } = scene.sizes
    const warmup = Math.ceil(drained / 10)
    const count = warmup + drained
    await enqueueAll(scene, count)
    const { arrivedMs, faults } = await drain(scene, count)
    return { values: { rate: steadyRate(arrivedMs, warmup) }, faults }
  },
}
