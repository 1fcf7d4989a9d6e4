/**
 * The shipped rules about processes and stores, from scrapes of processes: `start` on SQLite, `work` and `serve` on
 * Postgres, and with a `keep` of its own on Redis, and the escrow workers on Kafka with heartbeats in Redis, all in one
 * Prometheus with both files of rules. Nothing fires while all is well; then each of the stores gets into trouble
 * of its own, and out of it. A scraped state stands for as long as a rule asks.
 */
import assert from 'node:assert/strict'
import path from 'node:path'
import { type TestContext, test } from 'node:test'
import { open } from '../../src/client/mill.ts'
import { defineJob } from '../../src/index.ts'
import { type Running, startMillrace, until } from '../cli/run.ts'
import { sampleValue } from '../fixtures/exposition.ts'
import { startKafka } from '../servers/kafka.ts'
import { type OwnRedis, startRedis } from '../servers/redis.ts'
import { builtInAlerts } from './built-in.ts'
import { plain } from './jobs.ts'
import { skip } from './promtool.ts'
import { ESCROW_RULES, MILLRACE_RULES, Recording, type Scrapes } from './recording.ts'
import { addressOf, STORES, textOf } from './stores.ts'

const MODULE = path.join(import.meta.dirname, 'jobs.ts')
const LIMIT_MS = 600_000
/** The figures rest longer where counting takes longer. */
const FIGURES_MS = 240_000

/** Every process that Prometheus scrapes, by instance. */
class Targets {
  readonly #addresses = new Map<string, string>()

  add(instance: string, address: string): void {
    this.#addresses.set(instance, address)
  }

  address(instance: string): string {
    return this.#addresses.get(instance) ?? assert.fail(instance)
  }

  async scrape(): Promise<Scrapes> {
    const all = [...this.#addresses.keys()].map(async (instance) => [instance, await this.#textOf(instance)] as const)
    return Object.fromEntries(await Promise.all(all))
  }

  async value(instance: string, name: string): Promise<number | null> {
    const text = await this.#textOf(instance)
    return text === null ? null : sampleValue(text, name)
  }

  #textOf(instance: string): Promise<string | null> {
    return textOf(`${this.address(instance)}/metrics`).catch(() => null)
  }
}

class Scene {
  readonly targets = new Targets()
  readonly recording = new Recording({ rules: [MILLRACE_RULES, ESCROW_RULES], everySeconds: 15 })
  readonly #t: TestContext

  constructor(t: TestContext) {
    this.#t = t
  }

  /** Starts a command, and has it scraped under the name. */
  async start(instance: string, engine: string, ...args: readonly string[]): Promise<Running> {
    const running = this.run(engine, ...args)
    this.targets.add(instance, await addressOf(running))
    return running
  }

  /** Without being scraped. The reaper looks often, so that each scraped state has seen it. */
  run(engine: string, ...args: readonly string[]): Running {
    const types = args[1] === MODULE ? ['--types', 'plain'] : []
    const reap = /serve|--no-reap|--preset/.test(args.join()) ? [] : ['--reap', '1s']
    return startMillrace(this.#t, [...args, ...types, ...reap, '--engine', engine, '--json'])
  }

  async until(instance: string, name: string, value: number): Promise<void> {
    await until(async () => (await this.targets.value(instance, name)) === value, FIGURES_MS)
  }

  /** The rules built into the process are evaluated every 15 s. */
  async untilBuiltIn(instance: string, firing: readonly string[]): Promise<void> {
    const told = async () => (await builtInAlerts(this.targets.address(instance))).join()
    await until(async () => (await told()) === firing.join(), FIGURES_MS)
  }

  /** Until the reaper of the process has run since, so that it is not a silent one that is scraped. */
  async untilReaped(instance: string): Promise<void> {
    const passes = () => this.targets.value(instance, 'millrace_reaper_pass_duration_seconds_count')
    const before = (await passes()) ?? 0
    await until(async () => Number(await passes()) > before, FIGURES_MS)
  }

  /** What is scraped now stays so for a while. */
  async hold(minutes: number): Promise<void> {
    this.recording.add(await this.targets.scrape(), Date.now(), minutes * 60)
  }
}

const START = ['start', MODULE, '--port', '0']
const WORK = ['work', MODULE, '--metrics-port', '0']
const SERVE = ['serve', '--port', '0']
const ESCROW = ['start', '--preset', 'escrow', '--port', '0', '--presence']

interface Stores {
  readonly sqlite: string
  readonly postgres: string
  readonly redis: string
  readonly kafka: string
  readonly server: OwnRedis
}

async function storesFor(t: TestContext): Promise<Stores> {
  const { sqlite, postgres } = STORES
  assert.ok(sqlite && postgres)
  const [server, broker] = await Promise.all([startRedis({ aof: 'everysec' }), startKafka()])
  t.after(() => server.end())
  t.after(() => broker.end())
  const [redis, kafka] = [`${server.url}?prefix=shop`, broker.url]
  return { sqlite: await sqlite(t, []), postgres: await postgres(t, []), redis, kafka, server }
}

/** A refund that fails for good, and what is to be done with its dead letter. */
async function loseRefund(scene: Scene, kafka: string): Promise<() => Promise<void>> {
  await using mill = await open(`${kafka}?group=operator`)
  const refund = { command: 'refund', fail: 'no such deal' }
  await mill.enqueue(defineJob({ type: 'escrow.commands' }), refund, { attempts: 1, key: 'deal_1' })
  const dlq = `${scene.targets.address('escrow')}/internal/v1/dlq/escrow.commands`
  const letters = async (): Promise<readonly { readonly dlq_partition: number; readonly dlq_offset: string }[]> =>
    JSON.parse(await textOf(dlq)).letters
  await until(async () => (await letters()).length === 1, FIGURES_MS)
  return async () => {
    for (const { dlq_partition, dlq_offset } of await letters()) {
      const where = `${dlq}/${dlq_offset}?partition=${dlq_partition}&reason=tried`
      assert.equal((await fetch(where, { method: 'DELETE' })).status, 200)
    }
  }
}

/** Each store has run a job, and Prometheus has seen it before and after. */
async function runJobs(scene: Scene, urls: Readonly<Record<string, string>>): Promise<void> {
  for (const [instance, url] of Object.entries(urls)) {
    await using mill = await open(url)
    await mill.enqueue(plain, null)
    await until(async () => (await mill.counts()).plain?.completed === 1)
    await scene.untilReaped(instance)
  }
}

test('the processes of four stores: silent when all is well; told of when they stop, are away, unscraped, or lose a record', {
  skip,
  timeout: LIMIT_MS,
}, async (t) => {
  const scene = new Scene(t)
  const { recording } = scene
  const { server, ...urls } = await storesFor(t)
  const { sqlite, postgres, redis, kafka } = urls
  const [started, first] = await Promise.all([
    scene.start('sqlite', sqlite, ...START),
    scene.start('postgres-work', postgres, ...WORK),
    scene.start('postgres-serve', postgres, ...SERVE),
    scene.start('redis-work', redis, ...WORK, '--no-reap'),
    scene.start('redis-keep', redis, 'keep', '--metrics-port', '0'),
    scene.start('redis-serve', redis, ...SERVE),
    scene.start('escrow', kafka, ...ESCROW, server.url),
  ])
  // Just started: whatever their workers have come to.
  await scene.hold(0.5)
  recording.expect({})
  const judges = ['sqlite', 'postgres-serve', 'redis-serve', 'escrow']
  for (const instance of judges) await scene.until(instance, 'millrace_worker_instances', instance === 'escrow' ? 7 : 1)
  await scene.hold(2)
  recording.expect({})
  await runJobs(scene, { sqlite, 'postgres-work': postgres, 'redis-keep': redis })
  await scene.hold(3)
  recording.expect({})

  // In trouble: all of one store and the worker of another have stopped, one store is away, and a refund is lost.
  const resolve = await loseRefund(scene, kafka)
  started.child.kill('SIGTERM')
  first.child.kill('SIGTERM')
  await Promise.all([started.ended, first.ended, server.stop()])
  await scene.until('postgres-serve', 'millrace_worker_instances', 0)
  await scene.until('redis-serve', 'millrace_engine_up', 0)
  await scene.until('redis-work', 'millrace_engine_up', 0)
  await scene.until('escrow', 'worker_presence_up', 0)
  await scene.untilBuiltIn('redis-serve', ['EngineDown []'])
  const lost = 'DLQFinancial [["topic","escrow.commands.dlq"]]'
  await scene.untilBuiltIn('escrow', [lost, 'DeadLetters []', 'WorkerPresenceUnreachable []'])
  await scene.hold(2)
  recording.expect({
    MillraceEngineDown: [{ engine: 'redis' }, { engine: 'sqlite' }],
    MillraceNoWorkers: [{ engine: 'postgres' }],
    MillraceDeadLetters: [{ engine: 'kafka' }],
    DLQFinancial: [{ engine: 'kafka', topic: 'escrow.commands.dlq' }],
    // The heartbeats of the workers on Redis are there too.
    WorkerPresenceUnreachable: [{ engine: 'kafka' }, { engine: 'redis' }],
  })

  // Well again, but for a worker that nobody scrapes.
  await Promise.all([scene.start('sqlite', sqlite, ...START), server.start(), resolve()])
  const worker = scene.run(postgres, 'work', MODULE)
  await scene.until('postgres-serve', 'millrace_worker_instances', 1)
  await scene.until('sqlite', 'millrace_worker_instances', 1)
  for (const instance of ['redis-serve', 'redis-work', 'redis-keep'])
    await scene.until(instance, 'millrace_engine_up', 1)
  for (const instance of ['sqlite', 'redis-keep']) await scene.untilReaped(instance)
  for (const instance of ['redis-serve', 'escrow']) await scene.untilBuiltIn(instance, [])
  await scene.until('escrow', 'millrace_worker_instances', 7)
  await scene.hold(6)
  recording.expect({ MillraceWorkersNotScraped: [{ engine: 'postgres' }] })

  // It is stopped in good order, and another is scraped.
  worker.child.kill('SIGTERM')
  await worker.ended
  await scene.start('postgres-work', postgres, ...WORK)
  await scene.until('postgres-serve', 'millrace_worker_instances', 1)
  await scene.untilReaped('postgres-work')
  await scene.hold(1)
  recording.expect({})
  for (const instance of judges) await scene.untilBuiltIn(instance, [])
  await recording.judge()
})
