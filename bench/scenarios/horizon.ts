import { inBatches, makePayloads } from '../payload.ts'
import type { Scenario, Scene } from '../scenario.ts'
import { type Drained, drain, steadyRate } from './draining.ts'

/** Enqueues `count` more jobs, all at once, and drains them. */
async function turn(scene: Scene, from: number, count: number): Promise<Drained> {
  const { contender } = scene
  for (const batch of inBatches(makePayloads(count, from), contender.bulkSize)) await contender.enqueueBulk(batch)
  return drain(scene, count, from)
}

export const horizon: Scenario = {
  name: 'horizon',
  title: 'Under a transaction that is held open',
  explanation:
    'The rate of a drain before, and again after somebody has opened a transaction and 120 thousand jobs have been enqueued and finished in its sight: nothing that they left behind in the indexes can be removed while it lasts. A tenth of each drain is not counted, and one drain before is not timed.',
  metrics: [
    { key: 'before', title: 'before', unit: '/s' },
    { key: 'after', title: 'after', unit: '/s' },
    { key: 'kept', title: 'after to before', unit: '×' },
  ],
  targets: [
    {
      family: 'postgres',
      text: 'with one transaction held open, the rate after 120 thousand jobs ≥ 0.7 × the rate before',
      bound: '≥',
      limit: 0.7,
      unit: '×',
      measured: (figure) => figure('millrace-postgres', 'kept'),
    },
  ],
  families: ['postgres'],
  onDemand: ['postgres'],
  roundsMax: 2,
  async measure(scene) {
    const { jobs, horizon: finished } = scene.sizes
    const { url } = scene.place
    if (url === null) throw new Error('there is no server on which a transaction could be held open')
    const warmup = Math.ceil(jobs / 10)
    const first = Math.ceil(jobs / 4)
    const warm = await turn(scene, 0, first)
    const before = await turn(scene, first, jobs)
    const { holdTransaction } = await import('../servers/postgres.ts')
    const release = await holdTransaction(url)
    const meanwhile = await turn(scene, first + jobs, finished)
    const after = await turn(scene, first + jobs + finished, jobs)
    await release()
    const rates = { before: steadyRate(before.arrivedMs, warmup), after: steadyRate(after.arrivedMs, warmup) }
    const faults = [warm, before, meanwhile, after].flatMap((each) => each.faults)
    return { values: { ...rates, kept: rates.after / rates.before }, faults }
  },
}
