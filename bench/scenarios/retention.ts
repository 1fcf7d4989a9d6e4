import { setTimeout as sleep } from 'node:timers/promises'
import type { Retaining } from '../contender.ts'
import { Ledger } from '../ledger.ts'
import { makePayload, sharedNowMs } from '../payload.ts'
import type { Scenario, Scene } from '../scenario.ts'
import { percentile } from '../statistics.ts'
import { claimingOf } from './claim.ts'
import { errorFaults } from './draining.ts'

/** Fifty jobs a second. */
const GAP_MS = 20
/** More than a producer of that pace can send while a process may measure. */
const JOBS_MAX = 20_000

function retainingOf(scene: Scene): Retaining {
  if (scene.contender.retaining === undefined) throw new Error('this contender removes no finished jobs')
  return scene.contender.retaining
}

/** Sends jobs until it is told that the last finished one is gone, and says how many. */
async function produce({ contender, line }: Scene): Promise<void> {
  let stopped = false
  void line.hear('stop').then(() => {
    stopped = true
  })
  line.say('ready')
  let sent = 0
  for (; !stopped && sent < JOBS_MAX; sent += 1) {
    await sleep(GAP_MS)
    await contender.enqueueOne(makePayload(sent, sharedNowMs()))
  }
  line.say('sent', sent)
}

async function retain(scene: Scene): Promise<void> {
  const startedMs = performance.now()
  const removed = await retainingOf(scene).retain()
  scene.line.say('removed', { removed, tookMs: performance.now() - startedMs })
}

/** B167 */
export const retention: Scenario = {
  name: 'retention',
  title: 'Pickup beside retention',
  explanation:
    'One process removes 1 million finished jobs and gives the space back, while a worker in a second one does the jobs that a third one enqueues, 50 in a second. Pickup is measured as above, over the whole time of the removal.',
  metrics: [
    { key: 'p50', title: 'p50', unit: 'ms' },
    { key: 'p99', title: 'p99', unit: 'ms', tail: true },
    { key: 'longest', title: 'longest', unit: 'ms', tail: true },
    { key: 'rate', title: 'removed', unit: '/s' },
  ],
  targets: [
    {
      family: 'sqlite',
      text: 'pickup p99 < 100 ms while 1 million finished jobs are removed',
      bound: '<',
      limit: 100,
      unit: 'ms',
      measured: (figure) => figure('millrace-full', 'p99'),
    },
  ],
  families: ['sqlite'],
  onDemand: ['sqlite'],
  roundsMax: 2,
  async measure(scene) {
    const { contender, sizes } = scene
    await scene.start('fill').ended
    const ledger = new Ledger(JOBS_MAX)
    const tookMs: number[] = []
    const errors: unknown[] = []
    const working = await contender.work({
      concurrency: sizes.concurrency,
      onJob: (payload) => {
        tookMs.push(sharedNowMs() - payload.t)
        ledger.deliver(payload.n)
      },
      onError: (error) => errors.push(error),
    })
    const producer = scene.start('produce')
    await producer.hear('ready')
    const retainer = scene.start('retain')
    const retained = (await retainer.hear('removed')) as { readonly removed: number; readonly tookMs: number }
    producer.say('stop')
    const sent = Number(await producer.hear('sent'))
    await Promise.all([producer.ended, retainer.ended])
    await ledger.reach(sent, sizes.stallMs)
    await working.stop()
    const faults = [...ledger.faultsOfPart(), ...errorFaults(errors)]
    if (ledger.distinct !== sent) faults.push(`${ledger.distinct} of ${sent} jobs arrived`)
    if (retained.removed < sizes.large) faults.push(`${retained.removed} of ${sizes.large} finished jobs were removed`)
    const values = {
      p50: percentile(tookMs, 50),
      p99: percentile(tookMs, 99),
      longest: percentile(tookMs, 100),
      rate: (retained.removed / retained.tookMs) * 1_000,
    }
    return { values, faults }
  },
  parts: {
    produce,
    retain,
    fill: (scene) => claimingOf(scene).fill({ waiting: 0, scheduled: 0, finished: scene.sizes.large }),
  },
}
