/** A system with something on every page, in which every text field contains markup. */
import type { TestContext } from 'node:test'
import { defineJob, type Mill, NonRetryable } from 'millrace'
import type { Page } from 'playwright-core'
import { z } from 'zod'
import { eventually } from '../../conformance/process/child.ts'
import { LIMIT_MS } from './browser.ts'
import type { Serve, Served } from './served-dashboard.ts'

/** Each runs `ran` if it ever becomes part of a page. */
export const MARKUP = `<img src=x onerror="ran()"><script>ran()</script>"><svg onload="ran()">`

/** As long as a type may be, without a place to break it. */
const long = (name: string): string => name.padEnd(128, 'n')

const order = defineJob({
  type: long('pack-order'),
  payload: z.object({ note: z.string() }),
  run: () => ({ note: MARKUP }),
})
const reject = defineJob({
  type: long('charge-card'),
  run: () => {
    throw new NonRetryable(`refused: ${MARKUP}`)
  },
})
/** Runs until the test is over. */
const encode = defineJob({
  type: long('encode-film'),
  async run({ progress, signal }) {
    await progress({ percent: 40, text: MARKUP })
    await new Promise((resolve) => signal.addEventListener('abort', resolve))
  },
})
const remind = defineJob({ type: long('remind'), schedule: '0 3 * * *', run: () => null })
const JOBS = [order, reject, encode, remind]

export interface Place {
  readonly heading: string
  /** Behind the `#`. */
  readonly address: string
  /** Whether somebody's text stands on it. */
  readonly hasText: boolean
}

export interface FullScene extends Served {
  /** Every page of the dashboard. Two that follow each other have different headings, so that one can wait for each. */
  readonly places: readonly Place[]
}

export async function setFullScene(t: TestContext, serve: Serve): Promise<FullScene> {
  const alert = {
    rule: 'DeadLetters',
    severity: 'warning',
    status: 'firing',
    sinceMs: Date.now(),
    resolvedAtMs: null,
    text: MARKUP,
    labels: { type: MARKUP },
  } as const
  const served = await serve(t, { jobs: JOBS, over: () => ({ alerting: { current: () => [alert] } }) })
  const { dead, running, last } = await fill(served.mill)
  const places: readonly Place[] = [
    { heading: 'Overview', address: '', hasText: false },
    { heading: 'Jobs', address: 'jobs', hasText: true },
    { heading: reject.type, address: `jobs/${dead}`, hasText: true },
    { heading: encode.type, address: `jobs/${running}`, hasText: true },
    { heading: order.type, address: `jobs/${last}`, hasText: true },
    { heading: 'Dead letters', address: 'dead-letters', hasText: true },
    { heading: reject.type, address: `dead-letters/${dead}`, hasText: true },
    { heading: 'Queues', address: 'queues', hasText: true },
    { heading: 'Workers', address: 'workers', hasText: true },
    { heading: 'Schedules', address: 'schedules', hasText: false },
    { heading: 'Alerts', address: 'alerts', hasText: true },
    { heading: 'Audit', address: 'audit', hasText: true },
  ]
  return { ...served, places }
}

/** Goes to a page of the dashboard and waits until its answers are shown. */
export async function goTo(page: Page, url: string, { heading, address }: Pick<Place, 'heading' | 'address'>) {
  await page.goto(`${url}/#/${address}`)
  await page.getByRole('heading', { name: heading, level: 1, exact: true }).waitFor()
  await page.getByText('Loading…').first().waitFor({ state: 'detached' })
}

async function fill(mill: Mill): Promise<{ readonly dead: string; readonly running: string; readonly last: string }> {
  const by = { who: MARKUP, reason: MARKUP }
  await mill.work(JOBS, { id: `host:1:${MARKUP}`, drain: 0 })
  const options = { key: MARKUP, tenant: { orgId: MARKUP, workspaceId: MARKUP } }
  const dead = await mill.enqueue(reject, { card: MARKUP, [MARKUP]: 1 }, options)
  const running = await mill.enqueue(encode, {})
  const flow = await mill.enqueueFlow({
    first: { job: order, payload: { note: MARKUP } },
    second: { job: order, payload: { note: MARKUP } },
    last: { job: order, payload: { note: MARKUP }, after: ['first', 'second'] },
  })
  const waiting = await mill.enqueue(order, { note: MARKUP }, { delay: '1h', latest: MARKUP })
  await mill.cancel(waiting.id, by)
  const hasHappened = async (): Promise<boolean> => {
    const [one, other, last] = await Promise.all([dead, running, flow.last].map(({ id }) => mill.job(id)))
    return one?.state === 'dead_letter' && other?.progress !== null && last?.state === 'completed'
  }
  await eventually(hasHappened, 'the scene', LIMIT_MS)
  await mill.pause(order.type, by)
  await mill.enqueue(order, { note: MARKUP }, { latest: MARKUP })
  return { dead: dead.id, running: running.id, last: flow.last.id }
}
