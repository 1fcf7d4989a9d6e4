/** A Redis Cluster of real servers on loopback. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Redis } from 'ioredis'
import { freshPrefix, type OwnRedis, startRedis, withRedis } from './redis.ts'

export interface OwnCluster {
  /** For an engine, with the prefix: `redis+cluster://127.0.0.1:1,127.0.0.1:2?prefix=…`. */
  url(prefix?: string): string
  readonly primaries: readonly OwnRedis[]
  /** The n-th belongs to the n-th primary. */
  readonly replicas: readonly OwnRedis[]
  /** Ends all nodes for good. */
  end(): Promise<void>
}

export interface ClusterSettings {
  readonly primaries?: number
  readonly replicas?: boolean
  /** After which a node counts as failed, in milliseconds. */
  readonly nodeTimeoutMs?: number
  readonly settings?: Readonly<Record<string, string>>
}

const SLOTS = 16_384
const READY_MS = 60_000

export async function startRedisCluster(options: ClusterSettings = {}): Promise<OwnCluster> {
  const { primaries: count = 3, replicas: hasReplicas = false, nodeTimeoutMs = 5_000, settings = {} } = options
  const start = (): Promise<OwnRedis> =>
    startRedis({
      settings: {
        'cluster-enabled': 'yes',
        'cluster-node-timeout': String(nodeTimeoutMs),
        // Faster than the default, which is meant for networks.
        'repl-diskless-sync-delay': '0',
        ...settings,
      },
    })
  const nodes = await Promise.all(Array.from({ length: hasReplicas ? 2 * count : count }, start))
  const [primaries, replicas] = [nodes.slice(0, count), nodes.slice(count)]
  await Promise.all(primaries.map((node, index) => own(node, index, count)))
  const [first] = primaries
  for (const node of nodes.slice(1)) await on(node, (redis) => redis.cluster('MEET', '127.0.0.1', first?.port ?? 0))
  await Promise.all(nodes.map((node) => until(node, async (redis) => (await knownTo(redis)) === nodes.length)))
  for (const [index, replica] of replicas.entries()) {
    const primary = primaries[index]
    if (primary === undefined) continue
    const id = await on(primary, (redis) => redis.cluster('MYID'))
    await on(replica, (redis) => redis.cluster('REPLICATE', String(id)))
    await until(replica, async (redis) => /master_link_status:up/.test(await redis.info('replication')))
  }
  await Promise.all(nodes.map((node) => until(node, isOk)))
  const hosts = primaries.map(({ port }) => `127.0.0.1:${port}`).join(',')
  return {
    url: (prefix = freshPrefix()) => `redis+cluster://${hosts}?prefix=${prefix}`,
    primaries,
    replicas,
    end: async () => void (await Promise.all(nodes.map((node) => node.end()))),
  }
}

function on<Result>(node: OwnRedis, use: (redis: Redis) => Promise<Result>): Promise<Result> {
  return withRedis(node.url, use)
}

async function own(node: OwnRedis, index: number, count: number): Promise<void> {
  const from = Math.ceil((index * SLOTS) / count)
  const to = Math.ceil(((index + 1) * SLOTS) / count) - 1
  await on(node, async (redis) => {
    await redis.call('cluster', 'set-config-epoch', index + 1)
    await redis.call('cluster', 'addslotsrange', from, to)
  })
}

async function knownTo(redis: Redis): Promise<number> {
  const lines = String(await redis.cluster('NODES'))
    .trim()
    .split('\n')
  return lines.filter((line) => !line.includes('handshake')).length
}

async function isOk(redis: Redis): Promise<boolean> {
  return String(await redis.cluster('INFO')).includes('cluster_state:ok')
}

async function until(node: OwnRedis, holds: (redis: Redis) => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + READY_MS
  await on(node, async (redis) => {
    while (!(await holds(redis))) {
      if (performance.now() > deadline) throw new Error('the Redis Cluster of the tests did not become ready')
      await sleep(50)
    }
  })
}
