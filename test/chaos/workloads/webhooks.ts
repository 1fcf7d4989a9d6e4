/**
 * Worker processes that deliver webhooks and are killed in the middle of it. What the receiver got and what the tables
 * hold must be that of a run without kills. `node test/chaos/workloads/webhooks.ts` does the full run, on SQLite and on
 * Postgres; test/crash does a short one.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { seededRandom } from '../../../src/testing/open-for-test.ts'
import { systemClock } from '../../../src/time/clock.ts'
import { openWebhooks, type Webhooks } from '../../../workloads/webhooks/index.ts'
import { type WebhookReceiver, webhookReceiver } from '../../fixtures/webhook-receiver.ts'
import { WORKLOAD_PLACES } from '../../fixtures/workload-places.ts'

const CHILD = fileURLToPath(new URL('./webhooks-worker.ts', import.meta.url))
const ENDPOINTS = 2
const ANSWER_MS_MAX = 20

export interface WebhookChaosOptions {
  /** Of an empty database. */
  readonly url: string
  readonly jobs: number
  readonly kills: number
  readonly seed: number
  readonly finishMs: number
}

export interface WebhookChaosReport {
  readonly deliveries: number
  readonly kills: number
  readonly received: number
  /** Received again, because a kill broke the wire between the request and its record. */
  readonly repeated: number
  readonly seconds: number
  readonly violations: readonly string[]
}

class Stage {
  readonly receiver: WebhookReceiver
  readonly webhooks: Webhooks
  readonly #url: string
  readonly #children = new Set<ChildProcess>()

  constructor(url: string, receiver: WebhookReceiver, webhooks: Webhooks) {
    this.#url = url
    this.receiver = receiver
    this.webhooks = webhooks
  }

  async hire(): Promise<ChildProcess> {
    const child = fork(CHILD, [this.#url, this.receiver.origin], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
    this.#children.add(child)
    child.once('exit', () => this.#children.delete(child))
    await Promise.race([
      once(child, 'message'),
      once(child, 'exit').then(([code]) => Promise.reject(new Error(`a worker process ended with ${code}`))),
    ])
    return child
  }

  async kill(child: ChildProcess, signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    const exited = once(child, 'exit')
    child.kill(signal)
    await exited
  }

  /** Received, by delivery. */
  received(): ReadonlyMap<string, number> {
    const counts = new Map<string, number>()
    for (const { headers } of this.receiver.requests) {
      const id = String(headers['webhook-id'])
      counts.set(id, (counts.get(id) ?? 0) + 1)
    }
    return counts
  }

  async recorded(): Promise<ReadonlySet<string>> {
    const deliveries = await this.webhooks.deliveries({ status: 'success', limit: 10_000 })
    return new Set(deliveries.map(({ deliveryId }) => deliveryId))
  }

  killAll(): void {
    for (const child of this.#children) child.kill('SIGKILL')
  }
}

/** Waits for a condition of this process, without a fixed time. */
async function until(isDone: () => boolean | Promise<boolean>, timeoutMs: number): Promise<boolean> {
  const untilMs = systemClock.monotonicMs() + timeoutMs
  while (!(await isDone())) {
    if (systemClock.monotonicMs() > untilMs) return false
    await systemClock.sleep(5)
  }
  return true
}

export async function runWebhookChaos(options: WebhookChaosOptions): Promise<WebhookChaosReport> {
  const { url, jobs, kills, seed, finishMs } = options
  // The receiver draws while requests arrive, so the kills have numbers of their own.
  const [random, answerRandom] = [seededRandom(seed), seededRandom(seed + 1)]
  const startedMs = systemClock.monotonicMs()
  await using receiver = await webhookReceiver()
  receiver.answer((response) => void systemClock.sleep(answerRandom() * ANSWER_MS_MAX).then(() => response.end('ok')))
  const webhooks = await openWebhooks({ engine: url, allow: [receiver.origin], migrate: true })
  const stage = new Stage(url, receiver, webhooks)
  try {
    for (let n = 0; n < ENDPOINTS; n += 1) await webhooks.endpoints.add({ url: `${receiver.origin}/${n}` })
    const published = new Set<string>()
    for (let event = 0; event < jobs / ENDPOINTS; event += 1) {
      const { deliveries } = await webhooks.publish('order.paid', { event })
      for (const { deliveryId } of deliveries) published.add(deliveryId)
    }
    const broken = await killAtRandom(stage, { kills, random, jobs: published.size })
    const last = await stage.hire()
    const isDone = await until(async () => (await stage.recorded()).size >= published.size, finishMs)
    await stage.kill(last, 'SIGTERM')
    const received = stage.received()
    return {
      deliveries: published.size,
      kills,
      received: receiver.requests.length,
      repeated: receiver.requests.length - received.size,
      seconds: Math.round((systemClock.monotonicMs() - startedMs) / 1_000),
      violations: [...(isDone ? [] : ['not finished in time']), ...(await judge(stage, published, broken))],
    }
  } finally {
    stage.killAll()
    await webhooks.close()
  }
}

interface Killing {
  readonly kills: number
  readonly random: () => number
  readonly jobs: number
}

/** Returns the deliveries that had reached the receiver and were not recorded when a kill came: those may come again. */
async function killAtRandom(stage: Stage, { kills, random, jobs }: Killing): Promise<ReadonlySet<string>> {
  const broken = new Set<string>()
  const { receiver } = stage
  for (let killed = 0; killed < kills; killed += 1) {
    const child = await stage.hire()
    // Somewhere in the next share of the jobs, so that there is work for every kill.
    const more = 1 + Math.floor((random() * jobs) / (kills + 1))
    const target = Math.min(receiver.requests.length + more, jobs - 1)
    await until(() => receiver.requests.length >= target, 20_000)
    await stage.kill(child, 'SIGKILL')
    // What was still on its way to the receiver has arrived when its connections are closed.
    await until(() => receiver.connections() === 0, 10_000)
    const recorded = await stage.recorded()
    for (const id of stage.received().keys()) if (!recorded.has(id)) broken.add(id)
  }
  return broken
}

/** Each violation is a way in which this differs from one run without kills. */
async function judge(
  stage: Stage,
  published: ReadonlySet<string>,
  broken: ReadonlySet<string>,
): Promise<readonly string[]> {
  const { receiver, webhooks } = stage
  const violations: string[] = []
  const counts = stage.received()
  for (const id of published) if (!counts.has(id)) violations.push(`${id} was never received`)
  for (const [id, count] of counts) {
    if (!published.has(id)) violations.push(`${id} was never published`)
    if (count > 1 && !broken.has(id)) violations.push(`${id} was received ${count} times without a broken wire`)
  }
  const bodies = new Map<string, Set<string>>()
  for (const { headers, body } of receiver.requests) {
    const id = String(headers['webhook-id'])
    bodies.set(id, (bodies.get(id) ?? new Set()).add(body))
  }
  for (const [id, texts] of bodies) if (texts.size > 1) violations.push(`${id} was sent with different bodies`)
  const rows = await webhooks.deliveries({ limit: 10_000 })
  const perDelivery = Map.groupBy(rows, ({ deliveryId }) => deliveryId)
  for (const id of published) {
    const statuses = (perDelivery.get(id) ?? []).map(({ status }) => status)
    if (statuses.join() !== 'success') violations.push(`${id} has the rows [${statuses.join()}]`)
  }
  for (const { id, successCount, failureCount, avgLatencyMs } of await webhooks.endpoints.list()) {
    const latencies = rows.filter(({ webhookId }) => webhookId === id).map(({ latencyMs }) => latencyMs)
    const mean = latencies.reduce((sum, one) => sum + one, 0) / Math.max(latencies.length, 1)
    const expected = published.size / ENDPOINTS
    if (successCount !== expected) violations.push(`${id} counts ${successCount} successes of ${expected}`)
    if (failureCount !== 0) violations.push(`${id} counts ${failureCount} failures`)
    if (Math.abs(avgLatencyMs - mean) > 0.01) violations.push(`${id} has the mean ${avgLatencyMs}, not ${mean}`)
  }
  return violations
}

if (import.meta.main) {
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))
  const seed = Number(process.env.CHAOS_SEED ?? Math.floor(Math.random() * 2 ** 31))
  for (const { name, makePlace } of WORKLOAD_PLACES) {
    console.log(`${name}, seed ${seed}`)
    const place = await makePlace()
    const report = await runWebhookChaos({ url: place.url, jobs: 1_000, kills: 50, seed, finishMs: 120_000 })
    console.log(JSON.stringify(report, null, 2))
    await place.remove()
    if (report.violations.length > 0) process.exitCode = 1
  }
}
