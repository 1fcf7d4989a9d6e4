import { Ledger } from '../ledger.ts'
import type { Scenario, Scene } from '../scenario.ts'
import { claimingOf, largeLevels } from './claim.ts'
import { errorFaults } from './draining.ts'

const MEGABYTE = 1_048_576
const SAMPLE_EVERY = 100

const fill = (scene: Scene): Promise<void> => claimingOf(scene).fill(largeLevels(scene))

export const memory: Scenario = {
  name: 'memory',
  title: "A worker's memory",
  explanation:
    'The resident memory of a process whose worker drains a part of a store with 1 million jobs waiting (and 1 million scheduled for later, 1 million finished): the highest value seen, the Node process itself included. No process has a flag of V8 or sets one, as that of an application that embeds a worker.',
  metrics: [
    { key: 'rss', title: 'RSS, highest', unit: 'MB' },
    { key: 'rssBefore', title: 'before it worked', unit: 'MB' },
    { key: 'rate', title: 'drained meanwhile', unit: '/s' },
  ],
  targets: [
    {
      family: 'sqlite',
      text: 'memory of a busy embedded worker ≤ 140 MB RSS, without flags of V8',
      bound: '≤',
      limit: 140,
      unit: 'MB',
      measured: (figure) => figure('millrace-full', 'rss'),
    },
  ],
  families: ['sqlite', 'postgres'],
  onDemand: ['postgres'],
  roundsMax: 2,
  prepared: 'large',
  prepare: fill,
  async measure(scene) {
    const { contender, sizes } = scene
    // What earlier rounds drained is put back by another process, so that it does not count as this one's memory.
    await scene.start('fill').ended
    const before = await contender.remaining()
    const ledger = new Ledger(2 * sizes.large)
    const errors: unknown[] = []
    const rssBefore = process.memoryUsage.rss() / MEGABYTE
    let peak = 0
    // Sampled as jobs arrive and not by a timer: a worker that never lets the event loop turn would not be seen.
    const onJob = ({ n }: { readonly n: number }): void => {
      ledger.deliver(n)
      if (ledger.distinct % SAMPLE_EVERY === 0) peak = Math.max(peak, process.memoryUsage.rss())
    }
    const startedMs = performance.now()
    const working = await contender.work({
      concurrency: sizes.concurrency,
      onJob,
      onError: (error) => errors.push(error),
    })
    await ledger.reach(Math.min(sizes.jobs, sizes.large), sizes.stallMs)
    const rate = (ledger.distinct / (performance.now() - startedMs)) * 1_000
    await working.stop()
    const faults = [...ledger.faultsOfPart(), ...errorFaults(errors)]
    const gone = before - (await contender.remaining())
    if (gone !== ledger.distinct) faults.push(`${gone} jobs left the store, ${ledger.distinct} were delivered`)
    if (ledger.distinct < sizes.jobs) faults.push(`only ${ledger.distinct} of ${sizes.jobs} jobs arrived`)
    return { values: { rss: peak / MEGABYTE, rssBefore, rate }, faults }
  },
  parts: { fill },
}
