/**
 * Producers and workers on a Redis Cluster or on a Redis with sentinels, whose primary is killed in the middle.
 * `node test/chaos/redis-failover.ts --kind cluster|sentinel [--seed n] [--tries 3] [--replicas 1]` runs each try for
 * twenty seconds; the test suite runs a short one.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { slotOf } from '../../src/engines/redis/cluster/slots.ts'
import { prefixOfType } from '../../src/engines/redis/keys.ts'
import { isMillraceError } from '../../src/errors.ts'
import { defineJob, type Mill, open } from '../../src/index.ts'
import { seededRandom } from '../../src/testing/open-for-test.ts'
import { freshPrefix, type OwnRedis, startRedis, withRedis } from '../servers/redis.ts'
import { startRedisCluster } from '../servers/redis-cluster.ts'
import { startSentinels } from '../servers/redis-sentinel.ts'
import { type Acknowledged, type FailoverVerdict, judgeFailover, OUTCOMES_MS } from './failover-history.ts'

export interface FailoverOptions {
  readonly kind: 'cluster' | 'sentinel'
  readonly seed: number
  /** Load before the kill, and after the new primary has answered. */
  readonly beforeMs: number
  readonly afterMs: number
  /** After which a node counts as failed. */
  readonly timeoutMs: number
  /** How many replicas confirm an enqueue. 0: what was acknowledged within a second before the kill may be lost. */
  readonly replicas: number
}

export interface FailoverReport extends FailoverVerdict {
  /** Jobs of the types whose primary was killed. */
  readonly affected: number
  readonly rejected: number
  readonly types: readonly string[]
  readonly killed: readonly string[]
  /** The longest time between two completions of types whose primary went on, over the outage. */
  readonly othersGapMs: number | null
  readonly seconds: number
}

interface Scene {
  readonly url: string
  readonly types: readonly string[]
  /** The types whose keys the primary that is killed has. */
  readonly affected: readonly string[]
  kill(): Promise<void>
  /** Starts the killed one again once it has a successor, whose replica it becomes. */
  restore(): Promise<void>
  end(): Promise<void>
}

const TYPES = ['mail', 'report', 'invoice', 'resize', 'sync', 'notify'] as const
const SLOTS = 16_384

async function clusterScene(timeoutMs: number, random: () => number): Promise<Scene> {
  const cluster = await startRedisCluster({
    replicas: true,
    nodeTimeoutMs: timeoutMs,
    // Otherwise one failed primary stops all of them until it has a successor.
    settings: { 'cluster-require-full-coverage': 'no' },
  })
  const prefix = freshPrefix()
  const ownerOf = (type: string): number => {
    return Math.floor((slotOf(prefixOfType(prefix, type)) * cluster.primaries.length) / SLOTS)
  }
  const owners = [...new Set(TYPES.map(ownerOf))]
  const victim = owners[Math.floor(random() * owners.length)] ?? 0
  return {
    url: cluster.url(prefix),
    types: TYPES,
    affected: TYPES.filter((type) => ownerOf(type) === victim),
    kill: async () => cluster.primaries[victim]?.kill(),
    async restore() {
      const [killed, successor] = [cluster.primaries[victim], cluster.replicas[victim]]
      if (killed === undefined || successor === undefined) return
      // Before that it would come back as an empty primary.
      await withRedis(successor.url, async (redis) => {
        while (!(await redis.info('replication')).includes('role:master')) await sleep(50)
      })
      await killed.start()
    },
    end: () => cluster.end(),
  }
}

async function sentinelScene(timeoutMs: number): Promise<Scene> {
  // As docs/operating-redis.md says: without a replica that follows, nothing is taken that a failover would lose.
  const guard = { 'min-replicas-to-write': '1', 'repl-diskless-sync-delay': '0' }
  const primary = await startRedis({ settings: guard })
  const settings = { ...guard, replicaof: `127.0.0.1 ${primary.port}` }
  const replicas: readonly OwnRedis[] = await Promise.all([startRedis({ settings }), startRedis({ settings })])
  await withRedis(primary.url, async (redis) => {
    while ((await redis.wait(2, 1_000)) < 2) await sleep(50)
  })
  const sentinels = await startSentinels(primary, { sentinels: 3, replicas: 2, downAfterMs: timeoutMs })
  return {
    url: sentinels.url(freshPrefix()),
    types: TYPES,
    affected: TYPES,
    kill: () => primary.kill(),
    // There is another replica.
    restore: async () => {},
    async end() {
      await sentinels.end()
      await Promise.all([primary, ...replicas].map((server) => server.end()))
    },
  }
}

/** Beyond what the servers take to choose a new primary: a call waits for a connection up to five seconds. */
const RECONNECT_MS = 15_000
const DRAIN_MS = 120_000

export async function runFailover(options: FailoverOptions): Promise<FailoverReport> {
  const startedAtMs = performance.now()
  const random = seededRandom(options.seed)
  const { kind, timeoutMs, replicas } = options
  const scene = kind === 'cluster' ? await clusterScene(timeoutMs, random) : await sentinelScene(timeoutMs)
  const opened: Mill[] = []
  const mill = async (): Promise<Mill> => {
    const one = await open(`${scene.url}&replicas=${replicas}`)
    opened.push(one)
    return one
  }
  try {
    const load = new Load(scene, random)
    for (const one of [await mill(), await mill()]) await load.work(one)
    const producer = await mill()
    const producing = Promise.all(scene.types.map((type) => load.produce(producer, type)))
    await sleep(options.beforeMs)
    const killedAtMs = performance.now()
    await scene.kill()
    const goneAtMs = performance.now()
    await scene.restore()
    const resumedAtMs = await load.resumed(goneAtMs)
    await sleep(options.afterMs)
    load.stop()
    await producing
    const stored = await drained(producer, load.acknowledged)
    const verdict = judgeFailover(
      { ...load, killedAtMs, goneAtMs, resumedAtMs, stored },
      { windowMs: replicas > 0 ? null : OUTCOMES_MS, outageMaxMs: timeoutMs + RECONNECT_MS },
    )
    return {
      ...verdict,
      affected: load.acknowledged.filter(({ type }) => scene.affected.includes(type)).length,
      rejected: load.rejected,
      types: scene.types,
      killed: scene.affected,
      othersGapMs: load.othersGapMs(goneAtMs, resumedAtMs),
      seconds: Math.round((performance.now() - startedAtMs) / 1_000),
    }
  } finally {
    for (const one of opened) await one.close()
    await scene.end()
  }
}

/** Producers that repeat what was rejected, and workers; with a history of what they were told. */
class Load {
  readonly acknowledged: Acknowledged[] = []
  readonly completed: { readonly id: string; readonly type: string; readonly atMs: number }[] = []
  rejected = 0
  readonly #scene: Scene
  readonly #random: () => number
  #next = 0
  #stopped = false

  constructor(scene: Scene, random: () => number) {
    this.#scene = scene
    this.#random = random
  }

  async work(mill: Mill): Promise<void> {
    mill.events.on('job.settled', ({ job, outcome }) => {
      if (outcome.kind === 'complete') {
        this.completed.push({ id: job.id, type: job.type, atMs: performance.now() })
      }
    })
    const run = async (): Promise<void> => sleep(this.#random() * 20)
    // A lease shorter than the default: jobs whose answers were lost are run again soon.
    const jobs = this.#scene.types.map((type) => defineJob({ type, lease: '10s', attempts: 10, run }))
    await mill.work(jobs, { concurrency: 20 })
  }

  async produce(mill: Mill, type: string): Promise<void> {
    while (!this.#stopped) {
      this.#next += 1
      await this.#put(mill, type, this.#next)
      await sleep(5 + this.#random() * 10)
    }
  }

  async #put(mill: Mill, type: string, n: number): Promise<void> {
    for (let rejected = 0; ; rejected += 1) {
      const calledAtMs = performance.now()
      try {
        const { id } = await mill.enqueue(defineJob({ type, attempts: 10 }), { n }, { key: `n${n}` })
        this.acknowledged.push({ id, type, calledAtMs, atMs: performance.now(), rejected })
        return
      } catch (error) {
        if (!isMillraceError(error) || !error.code.startsWith('ERR_STORAGE_')) throw error
        this.rejected += 1
        if (this.#stopped && rejected > 20) return
        await sleep(50)
      }
    }
  }

  /** When the first call after the kill was acknowledged for a type whose primary was killed. */
  async resumed(goneAtMs: number): Promise<number> {
    for (;;) {
      const first = this.acknowledged.find(({ type, calledAtMs }) => calledAtMs > goneAtMs && this.#isAffected(type))
      if (first !== undefined) return first.atMs
      if (performance.now() - goneAtMs > DRAIN_MS) return performance.now()
      await sleep(20)
    }
  }

  #isAffected(type: string): boolean {
    return this.#scene.affected.includes(type)
  }

  othersGapMs(fromMs: number, toMs: number): number | null {
    const times = this.completed.flatMap(({ type, atMs }) => (this.#isAffected(type) ? [] : [atMs]))
    if (times.length === 0) return null
    const within = [fromMs, ...times.filter((atMs) => fromMs <= atMs && atMs <= toMs), toMs]
    return Math.round(Math.max(...within.slice(1).map((atMs, index) => atMs - (within[index] ?? atMs))))
  }

  stop(): void {
    this.#stopped = true
  }
}

/** The state of each acknowledged job that the store knows, when all of them are finished or time is over. */
async function drained(mill: Mill, acknowledged: readonly Acknowledged[]): Promise<ReadonlyMap<string, string>> {
  const untilMs = performance.now() + DRAIN_MS
  const states = new Map<string, string>()
  for (const { id } of acknowledged) {
    for (;;) {
      const job = await mill.job(id)
      if (job === null) break
      states.set(id, job.state)
      if (job.state === 'completed' || performance.now() > untilMs) break
      await sleep(100)
    }
  }
  return states
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      kind: { type: 'string', default: 'cluster' },
      seed: { type: 'string', default: String(Math.floor(Math.random() * 2 ** 31)) },
      tries: { type: 'string', default: '3' },
      replicas: { type: 'string', default: '0' },
    },
  })
  if (values.kind !== 'cluster' && values.kind !== 'sentinel') throw new Error('--kind is cluster or sentinel')
  for (let attempt = 0; attempt < Number(values.tries); attempt += 1) {
    const seed = Number(values.seed) + attempt
    console.log(`seed ${seed}, ${values.kind}, replicas=${values.replicas}`)
    const report = await runFailover({
      kind: values.kind,
      seed,
      beforeMs: 5_000 + (seed % 1_000),
      afterMs: 8_000,
      timeoutMs: 2_000,
      replicas: Number(values.replicas),
    })
    console.log(JSON.stringify({ ...report, violations: report.violations.slice(0, 20) }))
    if (report.violations.length > 0) process.exitCode = 1
  }
}
