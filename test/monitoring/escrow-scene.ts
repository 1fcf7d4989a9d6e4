/**
 * The seven escrow workers on a real broker, with heartbeats in a real Redis, watched, scraped and judged over HTTP. The
 * clock of heartbeats and of whoever watches them is a test clock, for rules about minutes; the workers have the real one.
 */
import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { openPresence, type RedisPresence } from '../../src/engines/redis/presence.ts'
import { createAdmin } from '../../src/http/index.ts'
import { type AnyJob, defineJob, type Mill, NonRetryable, open, type Worker } from '../../src/index.ts'
import { attachMetrics, attachPresence, healthRules, startAlerting } from '../../src/observe/index.ts'
import { joinMills } from '../../src/observe/joined-mills.ts'
import { TestClock } from '../../src/testing/test-clock.ts'
import { conversationRules } from '../../workloads/conversations/queue/alert-rules.ts'
import {
  ESCROW_TOPICS,
  ESCROW_WORKERS,
  type EscrowWorker,
  escrowLagLimits,
  isFinancialTopic,
  type OpenTopicDesk,
  openTopicDesk,
  Watch,
  watchMetrics,
  watchRules,
} from '../../workloads/escrow/index.ts'
import { until } from '../cli/run.ts'
import { urlOf } from '../kafka/kafka-fixtures.ts'
import { createTopic, type KafkaServer, startKafka } from '../servers/kafka.ts'
import { type OwnRedis, startRedis } from '../servers/redis.ts'
import { builtInAlerts, expectedOfBuiltIn } from './built-in.ts'
import { ESCROW_RULES, type Firing, MILLRACE_RULES, Recording } from './recording.ts'
import { textOf } from './stores.ts'

/** As often as heartbeats are sent. */
const EVERY_SECONDS = 10

/** A worker with a mill, a group and a connection for heartbeats of its own, as if it were a process. */
class Attended {
  readonly of: EscrowWorker
  readonly mill: Mill
  readonly #scene: EscrowScene
  readonly #job: AnyJob
  #presence: RedisPresence | null = null
  #detach: () => Promise<void> = async () => {}
  #worker: Worker | null = null
  #gate: { readonly opened: Promise<void>; open(): void } | null = null

  constructor(of: EscrowWorker, mill: Mill, scene: EscrowScene) {
    this.of = of
    this.mill = mill
    this.#scene = scene
    this.#job = defineJob({
      type: of.topic,
      run: async ({ payload }) => {
        await this.#gate?.opened
        if (payload === of.worker) throw new NonRetryable('as asked')
      },
    })
  }

  get isBeating(): boolean {
    return this.#presence !== null
  }

  async start(): Promise<void> {
    const { worker, group } = this.of
    const presence = await openPresence(this.#scene.redis.url)
    this.#presence = presence
    this.#detach = attachPresence(this.mill, {
      ...{ presence, clock: this.#scene.clock },
      lag: async () => (await this.#scene.lags()).find((one) => one.group === group)?.lag ?? 0,
    })
    this.#worker = await this.mill.work([this.#job], { id: `${worker}-1`, name: worker, drain: '10m' })
  }

  /** Its handler waits from now on, until it is let go. */
  block(): void {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#gate = { opened: promise, open: resolve }
  }

  release(): void {
    this.#gate?.open()
    this.#gate = null
  }

  stop(): Promise<void> {
    return this.#worker?.stop() ?? Promise.resolve()
  }

  /** After its stop it has signed off. */
  async signedOff(): Promise<void> {
    await this.stop()
    await this.#detach()
    await this.#presence?.close()
    this.#presence = null
  }

  /** Its heartbeats end without a word, as when it is killed. */
  async fallSilent(): Promise<void> {
    await this.#presence?.close()
    this.#presence = null
  }
}

export class EscrowScene {
  readonly redis: OwnRedis
  readonly clock = new TestClock()
  readonly desk: OpenTopicDesk
  readonly workers = new Map<string, Attended>()
  readonly #recording = new Recording({ rules: [ESCROW_RULES, MILLRACE_RULES], everySeconds: EVERY_SECONDS })
  #alerting: ReturnType<typeof startAlerting> | null = null
  #address = ''
  #lags: { readonly atMs: number; readonly read: ReturnType<OpenTopicDesk['lags']> } | null = null

  constructor(redis: OwnRedis, desk: OpenTopicDesk) {
    this.redis = redis
    this.desk = desk
  }

  /** Read once for all heartbeats of a moment. */
  lags(): ReturnType<OpenTopicDesk['lags']> {
    const atMs = this.clock.nowMs()
    if (this.#lags?.atMs !== atMs) this.#lags = { atMs, read: this.desk.lags() }
    return this.#lags.read
  }

  async open(t: TestContext, broker: KafkaServer): Promise<void> {
    for (const of of ESCROW_WORKERS) {
      const mill = await open(urlOf(broker, of.group))
      const worker = new Attended(of, mill, this)
      this.workers.set(of.worker, worker)
      t.after(() => {
        worker.release()
        return mill.close()
      })
    }
    const mills = [...this.workers.values()].map(({ mill }) => mill)
    const [first, ...others] = mills
    assert.ok(first)
    const presence = await openPresence(this.redis.url)
    t.after(() => presence.close())
    const { clock, desk } = this
    const watch = new Watch({ presence, lags: () => desk.lags(), pending: () => desk.pendingByTopic(), clock })
    const { instrument } = watchMetrics({ watch, dlqTopicOf: (type) => `${type}.dlq` })
    const metrics = await attachMetrics([first, ...others], { instruments: [instrument], clock })
    const expected = ESCROW_WORKERS.map(({ worker }) => worker)
    const watched = watchRules({ lagLimits: escrowLagLimits, isFinancial: isFinancialTopic, expected })
    const rules = [...healthRules(), ...conversationRules(), ...watched]
    // Evaluated at each expectation, not by the clock.
    this.#alerting = startAlerting(joinMills([first, ...others]), { rules, watch, clock, every: '1d' })
    const admin = createAdmin(first, { metrics, alerting: this.#alerting, page: null })
    t.after(() => admin.close())
    t.after(() => this.#alerting?.stop())
    this.#address = (await admin.listen({ port: 0 })).url
  }

  find(worker: string): Attended {
    return this.workers.get(worker) ?? assert.fail(worker)
  }

  /** Every heartbeat that is due has arrived before time goes on. */
  async pass(seconds: number): Promise<void> {
    for (let left = seconds; left > 0; left -= EVERY_SECONDS) {
      await this.clock.advance(EVERY_SECONDS * 1_000)
      await this.#beaten()
      this.#recording.add({ start: await textOf(`${this.#address}/metrics`) }, this.clock.nowMs())
    }
  }

  async #beaten(withinMs?: number): Promise<void> {
    const beating = [...this.workers.values()].filter(({ isBeating }) => isBeating)
    if (beating.length === 0) return
    await using presence = await openPresence(this.redis.url)
    await until(async () => {
      const seen = new Map((await presence.seen().catch(() => [])).map(({ type, atMs }) => [type, atMs]))
      return beating.every(({ of }) => seen.get(of.worker) === this.clock.nowMs())
    }, withinMs)
  }

  /** A scrape while nobody can send heartbeats. */
  async passUnheard(): Promise<void> {
    await this.clock.advance(EVERY_SECONDS * 1_000)
    this.#recording.add({ start: await textOf(`${this.#address}/metrics`) }, this.clock.nowMs())
  }

  /** A heartbeat that is sent before its connection is back is lost; the next one, or the one after it, is not. */
  async passUntilHeard(): Promise<void> {
    const isHeard = (): Promise<boolean> =>
      this.#beaten(2_000).then(
        () => true,
        () => false,
      )
    do await this.passUnheard()
    while (!(await isHeard()))
    await this.pass(EVERY_SECONDS)
  }

  /** At the last scrape exactly these fire, and the built-in rules say the same. */
  async expect(firing: Firing): Promise<void> {
    this.#recording.expect(firing)
    await this.#alerting?.evaluate()
    assert.deepEqual(await builtInAlerts(this.#address), expectedOfBuiltIn(firing))
  }

  /** The lag of every group is what `expected` says of its topic. */
  untilBehind(expected: (topic: string) => number): Promise<void> {
    return until(async () => {
      const lags = await this.desk.lags()
      return lags.length > 0 && lags.every(({ topic, lag }) => lag === expected(topic))
    })
  }

  judge(): Promise<void> {
    return this.#recording.judge()
  }
}

export async function escrowScene(t: TestContext): Promise<EscrowScene> {
  const [broker, redis] = await Promise.all([startKafka(), startRedis({ aof: 'everysec' })])
  t.after(() => broker.end())
  t.after(() => redis.end())
  await Promise.all(ESCROW_TOPICS.flatMap(({ topic, dlq }) => [topic, dlq]).map((name) => createTopic(broker, name)))
  const groups = ESCROW_WORKERS.map(({ group }) => group)
  const desk = await openTopicDesk(urlOf(broker, 'operator'), { groups })
  t.after(() => desk.close())
  const scene = new EscrowScene(redis, desk)
  await scene.open(t, broker)
  return scene
}
