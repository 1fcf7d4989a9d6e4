import { Redis } from 'ioredis'
import type { Engine } from '../../src/engine/engine.ts'
import { RedisClusterEngine } from '../../src/engines/redis/cluster/engine.ts'
import { clusterSource } from '../../src/engines/redis/cluster/nodes.ts'
import { connect } from '../../src/engines/redis/module.ts'
import { parseUrl } from '../../src/engines/redis/options.ts'
import { TestClock } from '../../src/testing/test-clock.ts'
import { type LossyWire, lossyWire } from '../../test/servers/lossy-wire.ts'
import { dropPrefix, freshPrefix } from '../../test/servers/redis.ts'
import { type OwnCluster, startRedisCluster } from '../../test/servers/redis-cluster.ts'
import type { Harness } from '../harness.ts'
import { advance, age } from './redis.ts'

let shared: Promise<OwnCluster> | null = null

/** Three nodes for all cases of this process. Every case has a prefix of its own; time is as for a single Redis. */
export async function redisClusterHarness(clock: TestClock = new TestClock()): Promise<Harness> {
  shared ??= startRedisCluster()
  const cluster = await shared
  const prefix = freshPrefix()
  const url = cluster.url(prefix)
  const outside = cluster.primaries.map((node) => new Redis(node.url))
  const views: Engine[] = []
  const wires: LossyWire[] = []
  const view = async (): Promise<Engine> => {
    const engine = await connect(url, { clock, migrate: true })
    views.push(engine)
    return engine
  }
  const everywhere = async (ms: number): Promise<void> => {
    await Promise.all(outside.map((redis) => age(redis, prefix, ms)))
  }
  const engine = await view()
  return {
    engine,
    clock,
    url,
    other: view,
    async lossyView() {
      const own = await Promise.all(cluster.primaries.map((node) => lossyWire(node.url, node)))
      wires.push(...own)
      const lossy = await lossyEngine({ cluster, url, wires: own, clock })
      views.push(lossy)
      return {
        engine: lossy,
        loseNextAnswer: (text) => {
          for (const wire of own) wire.loseNextAnswer(text)
        },
      }
    },
    advance: (ms) => advance(clock, ms, everywhere),
    step: async (ms) => {
      await everywhere(ms)
      clock.step(ms)
    },
    destroy: async () => {
      for (const opened of views) await opened.close()
      for (const wire of wires) wire.close()
      for (const redis of outside) redis.disconnect()
      for (const node of cluster.primaries) await dropPrefix(node.url, prefix)
    },
  }
}

interface LossyParts {
  readonly cluster: OwnCluster
  readonly url: string
  readonly wires: readonly LossyWire[]
  readonly clock: TestClock
}

/** Nodes tell their own addresses, so each is reached through its wire. */
async function lossyEngine({ cluster, url, wires, clock }: LossyParts): Promise<Engine> {
  const { address, nodes, options } = parseUrl(url)
  const source = await clusterSource(address, nodes)
  const portOf = new Map(
    cluster.primaries.map((node, index) => [node.port, Number(new URL(wires[index]?.url ?? '').port)]),
  )
  const reachedAt = ({ host, port }: (typeof nodes)[number]) => ({ host, port: portOf.get(port) ?? port })
  return RedisClusterEngine.connect({ ...source, reachedAt }, { clock, migrate: true }, options)
}
