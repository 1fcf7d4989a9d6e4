import type { Capabilities } from '../../engine/capabilities.ts'
import type { Engine } from '../../engine/engine.ts'
import type { EngineSettings } from '../../engine/open.ts'
import { CLUSTER_CAPABILITIES, RedisClusterEngine } from './cluster/engine.ts'
import { sourceOfHandle } from './cluster/handle.ts'
import { clusterSource } from './cluster/nodes.ts'
import { isClient } from './driver.ts'
import { CAPABILITIES, RedisEngine } from './engine.ts'
import { parseUrl, threadUrlOf } from './options.ts'
import { openPresence as openRedisPresence, type RedisPresence } from './presence.ts'

/** `redis://user:password@host:6379/0?prefix=bull`; `rediss:` for TLS; `redis+cluster:` and `redis+sentinel:` with several hosts. */
export async function connect(url: string, settings: EngineSettings): Promise<Engine> {
  const { together, address, nodes, options } = parseUrl(url)
  const chosen = { ...options, threadUrl: threadUrlOf(url, options.answerMs) }
  if (together !== 'cluster') return RedisEngine.connect({ address }, settings, chosen)
  return RedisClusterEngine.connect(await clusterSource(address, nodes), settings, chosen)
}

/** An ioredis client or Cluster: its settings are copied; the client itself is neither used nor closed. */
export function connectHandle(handle: object, settings: EngineSettings): Promise<Engine> | null {
  if (!isClient(handle)) return null
  if (handle.isCluster !== true) return RedisEngine.connect({ client: handle }, settings)
  return sourceOfHandle(handle).then((source) => RedisClusterEngine.connect(source, settings))
}

export function capabilitiesOf(url: string): Capabilities {
  return parseUrl(url).together === 'cluster' ? CLUSTER_CAPABILITIES : CAPABILITIES
}

export function openPresence(url: string): Promise<RedisPresence> {
  return openRedisPresence(url)
}
