/** The tour after a minute of work: two workers, a paused queue, dead letters, and somebody who looks after them. */
import type { TestContext } from 'node:test'
import { setTimeout as pass } from 'node:timers/promises'
import type { Mill } from 'millrace'
import { type Alerting, healthRules, startAlerting } from 'millrace/observe'
import { eventually } from '../../conformance/process/child.ts'
import { feedForever } from '../../examples/tour/feed.ts'
import { checksum, convertPrice, countPrimes, indexDocs, jobsFor, parseLedger } from '../../examples/tour/jobs.ts'
import { MemoryEngine } from '../../src/engines/memory/index.ts'
import { LIMIT_MS } from './browser.ts'
import type { Serve, Served } from './served-dashboard.ts'

const WORKED_MS = 75_000
const ADA = { who: 'ada', reason: 'the search cluster is being upgraded' }

export interface TourScene extends Served {
  /** Lets the load go down to the tour's own rounds, so that a list shows some of everything. */
  calm(): Promise<void>
  readonly addresses: Readonly<Record<string, { readonly address: string; readonly heading: string }>>
}

export async function setTourScene(t: TestContext, serve: Serve): Promise<TourScene> {
  const jobs = jobsFor(new MemoryEngine())
  let alerting: Alerting | undefined
  const served = await serve(t, {
    jobs,
    over: (mill) => {
      const rules = healthRules({ critical: [convertPrice.type, parseLedger.type] })
      alerting = startAlerting(mill, { rules, every: '5s' })
      return { alerting }
    },
  })
  const { mill, ends } = served
  ends.defer(async () => alerting?.stop())
  for (const name of ['mill-a', 'mill-b']) await mill.work(jobs, { id: `${name}:4121:9f2c41d8`, drain: 0 })
  await mill.schedules.upsert('nightly-index', { type: indexDocs, cron: '0 2 * * *', payload: { revision: 'nightly' } })
  const stop = new AbortController()
  const calmed = new AbortController()
  const fed = [feedForever(mill, stop.signal), feedChecksums(mill, calmed.signal)]
  ends.defer(async () => {
    stop.abort()
    calmed.abort()
    await Promise.all(fed)
  })
  await pass(WORKED_MS)
  await lookAfter(served)
  const calm = async (): Promise<void> => {
    calmed.abort()
    const newest = async () => new Set((await mill.jobs({ limit: 14 })).map(({ type }) => type))
    await eventually(async () => (await newest()).size >= 6, 'a list of many types', LIMIT_MS)
  }
  return { ...served, calm, addresses: await addressesOf(mill) }
}

/** A load that rises and falls, so that the charts have something to show. */
async function feedChecksums(mill: Mill, signal: AbortSignal): Promise<void> {
  for (let step = 0; !signal.aborted; step += 1) {
    const count = 8 + Math.round(6 * Math.sin(step / 6))
    await mill.enqueueMany(
      checksum,
      Array.from({ length: count }, () => ({ path: 'package.json' })),
    )
    await pass(400, undefined, { signal }).catch(() => {})
  }
}

async function lookAfter({ mill, url }: Served): Promise<void> {
  const post = async (path: string, body: object): Promise<void> => {
    const headers = { 'content-type': 'application/json', 'x-millrace-who': 'ada' }
    const answer = await fetch(`${url}/api/v1/${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
    if (!answer.ok) throw new Error(`${path}: ${await answer.text()}`)
  }
  const dead = await mill.jobs({ state: 'dead_letter', type: convertPrice.type })
  const [first, second] = dead
  const payload = { article: 'rye', amount: 1.9, currency: 'EUR' }
  await post(`dead-letters/${first?.id}/replay`, { payload, reason: 'the shop meant EUR' })
  await post('dead-letters/discard', { selection: { ids: [second?.id] }, reason: 'a test order' })
  await mill.pause(indexDocs.type, ADA)
  await mill.enqueue(indexDocs, { revision: 'waits' })
  await mill.enqueue(countPrimes, { below: 6_000_000 })
  await pass(11_000)
}

async function addressesOf(mill: Mill): Promise<TourScene['addresses']> {
  const [manifest] = await mill.jobs({ type: 'write-manifest', state: 'completed', limit: 1 })
  const [letter] = await mill.jobs({ type: convertPrice.type, state: 'dead_letter' })
  if (manifest === undefined || letter === undefined) throw new Error(`the tour did too little within ${WORKED_MS} ms`)
  return {
    jobs: { address: 'jobs', heading: 'Jobs' },
    job: { address: `jobs/${manifest.id}`, heading: 'write-manifest' },
    'dead-letters': { address: 'dead-letters', heading: 'Dead letters' },
    'dead-letter': { address: `dead-letters/${letter.id}`, heading: convertPrice.type },
    queues: { address: 'queues', heading: 'Queues' },
    workers: { address: 'workers', heading: 'Workers' },
    schedules: { address: 'schedules', heading: 'Schedules' },
    alerts: { address: 'alerts', heading: 'Alerts' },
    audit: { address: 'audit', heading: 'Audit' },
  }
}
