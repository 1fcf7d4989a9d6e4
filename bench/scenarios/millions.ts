import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import type { FamilyName, Listing } from '../contender.ts'
import type { Scenario, Scene, Target } from '../scenario.ts'
import { percentile } from '../statistics.ts'
import { claimingOf, claimsOf, compare, smallPart } from './claim.ts'

/** Of the types that the store is filled with, and of all of them. */
const LISTS: readonly string[] = [
  'queues',
  'jobs',
  'jobs?state=queued',
  'jobs?state=completed',
  'jobs?state=dead_letter',
  'jobs?type=type-3',
  'jobs?type=type-3&state=queued',
  'jobs?type=type-3&state=completed&limit=500',
  'jobs?search=host%203',
  'dead-letters',
  'dead-letters?type=type-15',
  'dead-letters/groups',
]
const ASKED = 20
const COUNTED = 10
const REST_MS = 50
/** Node's histogram holds the time between two ticks, so the tick itself is taken off. */
const TICK_MS = 2

function listingOf(scene: Scene): Listing {
  if (scene.contender.listing === undefined) throw new Error('this contender has no lists')
  return scene.contender.listing
}

/** Nine tenths are of twenty types and in all conditions; the rest is what claims take from. */
async function prepare(scene: Scene): Promise<void> {
  const { millions } = scene.sizes
  const share = Math.ceil(millions / 20)
  await listingOf(scene).fill(millions - 2 * share)
  await claimingOf(scene).fill({ waiting: share, scheduled: share, finished: 0 })
}

/** Another process, so that what it does itself does not count. The first answer to each request is left out. */
async function ask({ line }: Scene): Promise<void> {
  const url = String(await line.hear('url'))
  const p95: [string, number][] = []
  for (const list of LISTS) {
    const tookMs: number[] = []
    for (let turn = -1; turn < ASKED; turn += 1) {
      const startedMs = performance.now()
      const answer = await fetch(`${url}/api/v1/${list}`)
      const text = await answer.text()
      if (!answer.ok) throw new Error(`${list} answered ${answer.status}: ${text}`)
      if (turn >= 0) tookMs.push(performance.now() - startedMs)
    }
    p95.push([list, percentile(tookMs, 95)])
  }
  line.say('p95', p95)
}

/** The p95 of the slowest list. The three slowest are named. */
async function slowestList(scene: Scene): Promise<number> {
  const server = await listingOf(scene).serve()
  const asking = scene.start('ask')
  asking.say('url', server.url)
  const p95 = (await asking.hear('p95')) as readonly [string, number][]
  await asking.ended
  await server.close()
  const slowestFirst = p95.toSorted(([, one], [, other]) => other - one)
  for (const [list, ms] of slowestFirst.slice(0, 3)) process.stderr.write(`${list}: p95 ${ms.toFixed(1)} ms\n`)
  return slowestFirst[0]?.[1] ?? 0
}

interface Counted {
  readonly counts: number
  readonly loop: number
}

/** How long counting takes, and how long the event loop stood still meanwhile. */
async function timeCounts(scene: Scene): Promise<Counted> {
  const listing = listingOf(scene)
  const tookMs: number[] = []
  const delay = monitorEventLoopDelay({ resolution: TICK_MS })
  delay.enable()
  await sleep(REST_MS)
  // What happened until now is not counted.
  delay.reset()
  for (let turn = 0; turn < COUNTED; turn += 1) {
    const startedMs = performance.now()
    await listing.counts()
    tookMs.push(performance.now() - startedMs)
    await sleep(REST_MS)
  }
  delay.disable()
  return { counts: percentile(tookMs, 50), loop: Math.max(0, delay.max / 1e6 - TICK_MS) }
}

const targetsOf = (family: FamilyName, ours: string): readonly Target[] => [
  {
    family,
    text: 'every list of 10 million jobs p95 < 50 ms',
    bound: '<',
    limit: 50,
    unit: 'ms',
    measured: (figure) => figure(ours, 'lists'),
  },
  {
    family,
    text: 'counting 10 million jobs holds the event loop ≤ 10 ms',
    bound: '≤',
    limit: 10,
    unit: 'ms',
    measured: (figure) => figure(ours, 'loop'),
  },
  {
    family,
    text: 'claim among 10 million jobs ≤ 1.5 × among 1 thousand',
    bound: '≤',
    limit: 1.5,
    unit: '×',
    measured: (figure) => figure(ours, 'growth'),
  },
]

export const millions: Scenario = {
  name: 'millions',
  title: 'Ten million jobs',
  explanation:
    'A store of 10 million jobs over 21 types: 7.2 million completed, 1.85 million waiting, half a million scheduled for later, 0.45 million dead letters. «Lists» is the p95 of the slowest of twelve lists that another process asks of the admin API, twenty times after a first answer that does not count: where counting the causes of dead letters takes long, that one waits for it, and later ones get the last counts while new ones are made; «counts» is how long counting all types and states takes, and «loop» the longest that the event loop stood still meanwhile; «claim» is a claim of 50 as above.',
  metrics: [
    { key: 'lists', title: 'slowest list, p95', unit: 'ms', tail: true },
    { key: 'counts', title: 'counts, p50', unit: 'ms', tail: true },
    { key: 'loop', title: 'loop, longest', unit: 'ms', tail: true },
    { key: 'largeP50', title: 'claim, p50', unit: 'ms' },
    { key: 'growth', title: 'claim, against 1 thousand jobs', unit: '×' },
  ],
  targets: [...targetsOf('sqlite', 'millrace-full'), ...targetsOf('postgres', 'millrace-postgres')],
  families: ['sqlite', 'postgres'],
  onDemand: ['sqlite', 'postgres'],
  prepared: 'millions',
  prepare,
  async measure(scene) {
    const { small, large } = await compare(scene, claimsOf(scene))
    const [smallP50, largeP50] = [percentile(small.tookMs, 50), percentile(large.tookMs, 50)]
    const counted = await timeCounts(scene)
    const lists = await slowestList(scene)
    const values = { lists, ...counted, largeP50, growth: largeP50 / smallP50 }
    return { values, faults: [...small.faults, ...large.faults] }
  },
  parts: { ask, small: smallPart(claimsOf) },
}
