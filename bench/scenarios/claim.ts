import type { Claiming, Levels } from '../contender.ts'
import { makePayloads } from '../payload.ts'
import { placeWithin } from '../place.ts'
import type { Scenario, Scene } from '../scenario.ts'
import { percentile } from '../statistics.ts'

const CLAIM_SIZE = 50
/** As many as a busy worker asks for at once: a server may find them in another way than a few. */
const BATCH_SIZE = 500
const SMALL: Levels = { waiting: 1_000, scheduled: 0, finished: 0 }
/** A contender whose claim is slow is not timed as often; its figure needs no more. */
const BUDGET_MS = 5_000
const WARMUP_MS_MAX = 2_000
const TIMED_MIN = 3
/** Indices of jobs added between claims, out of the way of those the store was filled with and of other rounds. */
const ADDED_FROM = 1_000_000_000 + process.pid * 1_000_000

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

interface Claims {
  readonly size: number
  readonly warmup: number
  readonly count: number
}

/** Only the claim is timed. What it took is completed and replaced, so that the store stays as large as it was. */
async function timeClaims(scene: Scene, { size, warmup, count }: Claims): Promise<Timed> {
  const { contender } = scene
  const claiming = claimingOf(scene)
  const tookMs: number[] = []
  const seen = new Set<number>()
  const faults: string[] = []
  const startedMs = performance.now()
  for (let turn = 0; turn < warmup + count; turn += 1) {
    const beforeMs = performance.now()
    if (tookMs.length >= TIMED_MIN && beforeMs > startedMs + BUDGET_MS) break
    const claimed = await claiming.claim(size)
    if (turn >= warmup || beforeMs > startedMs + WARMUP_MS_MAX) tookMs.push(performance.now() - beforeMs)
    if (claimed.payloads.length !== size) faults.push(`a claim of ${size} got ${claimed.payloads.length}`)
    for (const { n } of claimed.payloads) {
      if (seen.has(n)) faults.push(`job ${n} was claimed twice`)
      seen.add(n)
    }
    await claimed.complete()
    await contender.enqueueBulk(makePayloads(size, ADDED_FROM + turn * size))
  }
  return { tookMs, faults }
}

interface Compared {
  readonly small: Timed
  readonly large: Timed
}

/** The small store has a process and a place of its own. */
export async function compare(scene: Scene, claims: Claims): Promise<Compared> {
  const other = scene.start('small', await placeWithin(scene.place))
  const small = (await other.hear('timed')) as Timed
  await other.ended
  return { small, large: await timeClaims(scene, claims) }
}

export const smallPart =
  (claimsOf: (scene: Scene) => Claims) =>
  async (scene: Scene): Promise<void> => {
    await claimingOf(scene).fill(SMALL)
    scene.line.say('timed', await timeClaims(scene, claimsOf(scene)))
  }

function valuesOf({ small, large }: Compared): Record<string, number> {
  const [smallP50, largeP50] = [percentile(small.tookMs, 50), percentile(large.tookMs, 50)]
  return { smallP50, largeP50, largeP95: percentile(large.tookMs, 95), growth: largeP50 / smallP50 }
}

const METRICS: Scenario['metrics'] = [
  { key: 'smallP50', title: 'small store, p50', unit: 'ms' },
  { key: 'largeP50', title: 'large store, p50', unit: 'ms' },
  { key: 'largeP95', title: 'large store, p95', unit: 'ms', tail: true },
  { key: 'growth', title: 'growth of p50', unit: '×' },
]

export const claimsOf = ({ sizes }: Scene): Claims => ({ size: CLAIM_SIZE, warmup: 20, count: sizes.claims })
/** Few, so that the store's own jobs outlast all rounds. */
const batchesOf = ({ sizes }: Scene): Claims => ({ size: BATCH_SIZE, warmup: 3, count: Math.ceil(sizes.claims / 20) })

// X120
export const claim: Scenario = {
  name: 'claim',
  title: 'Cost of a claim in a large store',
  explanation: `A claim of ${CLAIM_SIZE} in a small store of 1 thousand jobs waiting, and in a large one of 1 million waiting, 1 million scheduled for later at a higher priority and 1 million finished. What was claimed is completed and replaced, untimed.`,
  metrics: METRICS,
  targets: [
    {
      family: 'sqlite',
      text: 'claim in the large store ≤ 3 × the small one',
      bound: '≤',
      limit: 3,
      unit: '×',
      measured: (figure) => figure('millrace-full', 'growth'),
    },
    {
      family: 'sqlite',
      text: 'claim in the large store p95 < 5 ms',
      bound: '<',
      limit: 5,
      unit: 'ms',
      measured: (figure) => figure('millrace-full', 'largeP95'),
    },
    {
      family: 'postgres',
      text: 'claim in the large store on Postgres ≤ 2 × the small one',
      bound: '≤',
      limit: 2,
      unit: '×',
      measured: (figure) => figure('millrace-postgres', 'growth'),
    },
  ],
  // A BullMQ queue can only be filled job by job.
  families: ['sqlite', 'postgres'],
  onDemand: ['sqlite', 'postgres'],
  prepared: 'large',
  prepare: (scene) => claimingOf(scene).fill(largeLevels(scene)),
  async measure(scene) {
    const compared = await compare(scene, claimsOf(scene))
    return { values: valuesOf(compared), faults: [...compared.small.faults, ...compared.large.faults] }
  },
  parts: { small: smallPart(claimsOf) },
}

export const batch: Scenario = {
  name: 'batch',
  title: 'Cost of a large claim in a large store',
  explanation: `A claim of ${BATCH_SIZE}, measured like that of ${CLAIM_SIZE}: a server's planner may find so many in another way.`,
  metrics: METRICS,
  targets: [
    {
      family: 'postgres',
      text: `claim of ${BATCH_SIZE} in the large store on Postgres ≤ 2 × the small one`,
      bound: '≤',
      limit: 2,
      unit: '×',
      measured: (figure) => figure('millrace-postgres', 'growth'),
    },
  ],
  families: ['postgres'],
  onDemand: ['postgres'],
  prepared: 'large',
  prepare: (scene) => claimingOf(scene).fill(largeLevels(scene)),
  async measure(scene) {
    const compared = await compare(scene, batchesOf(scene))
    return { values: valuesOf(compared), faults: [...compared.small.faults, ...compared.large.faults] }
  },
  parts: { small: smallPart(batchesOf) },
}
