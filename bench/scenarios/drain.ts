import { ratioOf, type Scenario } from '../scenario.ts'
import { drain, enqueueAll, steadyRate } from './draining.ts'

// A07
export const drained: Scenario = {
  name: 'drain',
  title: 'Drain',
  explanation:
    'A worker drains a full queue of jobs that do nothing. The clock starts when a tenth as many jobs again have been delivered, so that start-up is not counted, and stops at the last delivery; the store is then asked whether anything is left unsettled.',
  metrics: [{ key: 'rate', title: 'rate', unit: '/s' }],
  targets: [
    {
      text: 'drained with synchronous=FULL ≥ 4 × plainjob',
      bound: '≥',
      limit: 4,
      unit: '×',
      measured: (figure) => ratioOf(figure('millrace-full', 'rate'), figure('plainjob', 'rate')),
    },
  ],
  async measure(scene) {
    const warmup = Math.ceil(scene.sizes.jobs / 10)
    const count = warmup + scene.sizes.jobs
    await enqueueAll(scene, count)
    const { arrivedMs, faults } = await drain(scene, count)
    return { values: { rate: steadyRate(arrivedMs, warmup) }, faults }
  },
}
