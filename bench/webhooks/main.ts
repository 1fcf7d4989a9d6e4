/**
 * How many webhooks one worker delivers: npm run bench:webhooks [-- --deliveries N --enforce]
 * Each call is a run; the page shows the last three.
 *
 * One process delivers to a receiver on this machine, 20 at once, with the rate limit lifted: claiming, signing, sending,
 * recording and settling. What the receiver has counted decides: a lost or repeated delivery fails the run.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { applyMigrations } from '../../src/engine/open.ts'
import { systemClock } from '../../src/time/clock.ts'
import { openWebhooks } from '../../workloads/webhooks/index.ts'
import { machineFacts } from '../machine.ts'
import { DOCS_DIR, RESULTS_DIR, writeDocs } from '../report/files.ts'
import { readIfThere } from '../report/published.ts'
import { WEBHOOK_RESULTS, type WebhookFigure, type WebhookResult } from '../report/webhooks.ts'
import { withRun } from '../report/workload-figures.ts'
import { createDatabase, dropDatabase } from '../servers/postgres.ts'
import { startDurablePostgres } from '../servers/start.ts'
import { percentile } from '../statistics.ts'

const RECEIVER = fileURLToPath(new URL('./receiver.ts', import.meta.url))
const ENDPOINTS = 10
/** webhooks/s, on SQLite and on Postgres. */
const TARGET = 1_000

interface Measured {
  readonly perSecond: number
  readonly latencyMs: number
}

async function startReceiver(): Promise<{ readonly child: ChildProcess; readonly origin: string }> {
  const child = fork(RECEIVER)
  const [{ port }] = (await once(child, 'message')) as [{ port: number }]
  return { child, origin: `http://127.0.0.1:${port}` }
}

async function deliver(engine: string, deliveries: number): Promise<Measured> {
  const { child, origin } = await startReceiver()
  const webhooks = await openWebhooks({ engine, allow: [origin], limiter: null, migrate: true })
  try {
    for (let n = 0; n < ENDPOINTS; n += 1) await webhooks.endpoints.add({ url: `${origin}/${n}` })
    for (let n = 0; n < deliveries / ENDPOINTS; n += 1) {
      await webhooks.publish('order.paid', { order: n, customer: 'ann', total: 12.5, lines: [1, 2, 3] })
    }
    const done = completions(webhooks.mill, deliveries)
    const startedMs = systemClock.monotonicMs()
    await webhooks.work()
    await done
    const tookMs = systemClock.monotonicMs() - startedMs
    child.send('count')
    const [{ received, repeated }] = (await once(child, 'message')) as [{ received: number; repeated: number }]
    if (received !== deliveries || repeated > 0) {
      throw new Error(`of ${deliveries} deliveries ${received} were received and ${repeated} of them repeated`)
    }
    const recorded = await webhooks.deliveries({ status: 'success', limit: 10_000 })
    const latencies = recorded.map(({ latencyMs }) => latencyMs)
    return { perSecond: deliveries / (tookMs / 1_000), latencyMs: percentile(latencies, 95) }
  } finally {
    await webhooks.close()
    child.disconnect()
  }
}

/** When that many jobs have completed, which is after they were delivered and recorded. */
function completions({ events }: Awaited<ReturnType<typeof openWebhooks>>['mill'], expected: number): Promise<void> {
  return new Promise((resolve) => {
    let count = 0
    events.on('job.settled', () => {
      count += 1
      if (count === expected) resolve()
    })
  })
}

async function onSqlite(deliveries: number): Promise<Measured> {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-bench-webhooks-'))
  try {
    return await deliver(`sqlite:${join(folder, 'webhooks.db')}`, deliveries)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

async function onPostgres(server: string, deliveries: number): Promise<Measured> {
  const url = await createDatabase(server, 'webhooks')
  try {
    await applyMigrations(url, { clock: systemClock, migrate: true })
    return await deliver(url, deliveries)
  } finally {
    await dropDatabase(url)
  }
}

const rounded = (value: number): number => Math.round(value)

function figuresOf(store: string, { perSecond, latencyMs }: Measured): readonly WebhookFigure[] {
  return [
    { what: `${store}, webhooks per second`, value: rounded(perSecond), unit: '/s', target: TARGET },
    { what: `${store}, request to response, p95`, value: rounded(latencyMs), unit: 'ms' },
  ]
}

const { values } = parseArgs({ options: { deliveries: { type: 'string' }, enforce: { type: 'boolean' } } })
const deliveries = Number(values.deliveries ?? 10_000)
const machine = machineFacts({})
const [date = '', time = ''] = new Date(systemClock.nowMs()).toISOString().split(/[T.]/)
const server = await startDurablePostgres()
const sqlite = await onSqlite(deliveries)
const postgres = await onPostgres(server.url, deliveries)
await server.stop()
const figures = [...figuresOf('SQLite', sqlite), ...figuresOf('Postgres', postgres)]
const run: WebhookResult = { date, times: [`${date} ${time}`], deliveries, machine, figures }
const isStandard = values.deliveries === undefined
const before = isStandard ? await readIfThere<WebhookResult>(RESULTS_DIR, WEBHOOK_RESULTS) : null
const result = withRun<WebhookFigure, WebhookResult>(before, run, ({ target = 0 }, value) => value >= target)
console.table(result.figures.map(({ runs, ...figure }) => ({ ...figure, runs: runs?.join(', ') })))
if (isStandard) {
  writeFileSync(join(RESULTS_DIR, WEBHOOK_RESULTS), `${JSON.stringify(result, null, 2)}\n`)
  await writeDocs(RESULTS_DIR, DOCS_DIR)
}
const missed = result.figures.filter(({ isMet }) => isMet === false)
for (const { what, value, target } of missed) console.log(`missed: ${what}: ${value}, target ${target}`)
process.exitCode = values.enforce === true && missed.length > 0 ? 1 : 0
