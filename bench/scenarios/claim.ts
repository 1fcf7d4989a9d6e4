import { mkdtemp } from 'node:fs/promises'
import { join } from 'node:path'
import type { Claiming, Levels } from '../contender.ts'
import { makePayloads } from '../payload.ts'
import type { Scenario, Scene } from '../scenario.ts'
import { percentile } from '../statistics.ts'

const CLAIM_SIZE = 50
const SMALL: Levels = { waiting: 1_000, scheduled: 0, finished: 0 }
const WARMUP = 20
/** A contender whose claim is slow is not timed as often; its figure needs no more. */
const BUDGET_MS = 5_000
/** Indices of jobs added between claims, out of the way of those the store was filled with. */
const ADDED_FROM = 1_000_000_000

export function largeLevels(scene: Scene): Levels {
  const { large } = scene.sizes
  return { waiting: large, scheduled: large, finished: large }
}

export function claimingOf(scene: Scene): Claiming {
  if (scene.contender.claiming === undefined) throw new Error('this contender cannot be filled or claimed from by hand')
  return scene.contender.claiming
}

interface Timed {
  readonly tookMs: readonly number[]
  readonly faults: readonly string[]
}

/** Only the claim is timed. What it took is completed and replaced, so that the store stays as large as it was. */
async function timeClaims(scene: Scene): Promise<Timed> {
  const { contender, sizes } = scene
  const claiming = claimingOf(scene)
  const tookMs: number[] = []
  const seen = new Set<number>()
  const faults: string[] = []
  const endMs = performance.now() + BUDGET_MS
  for (let turn = 0; turn < WARMUP + sizes.claims && performance.now() < endMs; turn += 1) {
    const beforeMs = performance.now()
    const claimed = await claiming.claim(CLAIM_SIZE)
    if (turn >= WARMUP) tookMs.push(performance.now() - beforeMs)
    if (claimed.payloads.length !== CLAIM_SIZE) faults.push(`a claim of ${CLAIM_SIZE} got ${claimed.payloads.length}`)
    for (const { n } of claimed.payloads) {
      if (seen.has(n)) faults.push(`job ${n} was claimed twice`)
      seen.add(n)
    }
    await claimed.complete()
    await contender.enqueueBulk(makePayloads(CLAIM_SIZE, ADDED_FROM + turn * CLAIM_SIZE))
  }
  return { tookMs, faults }
}

/** The small store, in a process and at a place of its own. */
async function small(scene: Scene): Promise<void> {
  await claimingOf(scene).fill(SMALL)
  scene.line.say('timed', await timeClaims(scene))
}

// X120
export const claim: Scenario = {
  name: 'claim',
  title: 'Cost of a claim in a large store',
  explanation: `A claim of ${CLAIM_SIZE} in a small store of 1 thousand jobs waiting, and in a large one of 1 million waiting, 1 million scheduled for later at a higher priority and 1 million finished. What was claimed is completed and replaced, untimed.`,
  metrics: [
    { key: 'smallP50', title: 'small store, p50', unit: 'ms' },
    { key: 'largeP50', title: 'large store, p50', unit: 'ms' },
    { key: 'largeP95', title: 'large store, p95', unit: 'ms' },
    { key: 'growth', title: 'growth of p50', unit: '×' },
  ],
  targets: [
    {
      text: 'claim in the large store ≤ 3 × the small one',
      bound: '≤',
      limit: 3,
      unit: '×',
      measured: (figure) => figure('millrace-full', 'growth'),
    },
    {
      text: 'claim in the large store p95 < 5 ms',
      bound: '<',
      limit: 5,
      unit: 'ms',
      measured: (figure) => figure('millrace-full', 'largeP95'),
    },
  ],
  prepared: 'large',
  prepare: (scene) => claimingOf(scene).fill(largeLevels(scene)),
  async measure(scene) {
    const other = scene.start('small', { dir: await mkdtemp(join(scene.place.dir, 'small-')) })
    const inSmall = (await other.hear('timed')) as Timed
    await other.ended
    const inLarge = await timeClaims(scene)
    const smallP50 = percentile(inSmall.tookMs, 50)
    const largeP50 = percentile(inLarge.tookMs, 50)
    const largeP95 = percentile(inLarge.tookMs, 95)
    const values = { smallP50, largeP50, largeP95, growth: largeP50 / smallP50 }
    return { values, faults: [...inSmall.faults, ...inLarge.faults] }
  },
  parts: { small },
}
