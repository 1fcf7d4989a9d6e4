import { inBatches, makePayloads } from '../payload.ts'
import { ratioOf, type Scenario } from '../scenario.ts'
import { drain } from './draining.ts'

export const bulk: Scenario = {
  name: 'bulk',
  title: 'Bulk enqueue',
  explanation:
    'All jobs are enqueued through the call for many, in batches of 1 000, after one batch that is not timed. All are then delivered and checked.',
  metrics: [{ key: 'rate', title: 'rate', unit: '/s' }],
  targets: [
    {
      family: 'sqlite',
      text: 'bulk enqueue with synchronous=FULL ≥ 0.5 × plainjob',
      bound: '≥',
      limit: 0.5,
      unit: '×',
      measured: (figure) => ratioOf(figure('millrace-full', 'rate'), figure('plainjob', 'rate')),
    },
    {
      family: 'redis',
      text: 'bulk enqueue on Redis ≥ 1 × BullMQ',
      bound: '≥',
      limit: 1,
      unit: '×',
      measured: (figure) => ratioOf(figure('millrace-redis', 'rate'), figure('bullmq', 'rate')),
    },
  ],
  async measure(scene) {
    const { contender, sizes } = scene
    const warmup = contender.bulkSize
    await contender.enqueueBulk(makePayloads(warmup))
    const batches = [...inBatches(makePayloads(sizes.jobs, warmup), contender.bulkSize)]
    const startedMs = performance.now()
    for (const batch of batches) await contender.enqueueBulk(batch)
    const rate = (sizes.jobs / (performance.now() - startedMs)) * 1_000
    const { faults } = await drain(scene, warmup + sizes.jobs)
    return { values: { rate }, faults }
  },
}
