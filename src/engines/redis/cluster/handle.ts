/** A Cluster of ioredis that a user passes to `open`: its settings are copied; it is neither used nor closed. */
import { EngineError } from '../../../errors.ts'
import type { RedisClient } from '../driver.ts'
import type { HostPort } from '../hosts.ts'
import type { ClusterSource } from './nodes.ts'

/** By its shape, in any version of ioredis from 5 on. */
interface ClusterHandle {
  readonly startupNodes: readonly unknown[]
  readonly options: {
    readonly redisOptions?: Readonly<Record<string, unknown>>
    readonly keyPrefix?: string
    readonly natMap?: unknown
  }
}

export async function sourceOfHandle(handle: object): Promise<ClusterSource> {
  if (!isClusterHandle(handle)) {
    throw new EngineError('ERR_ENGINE_URL', 'this Cluster is not one of ioredis 5 or 6; give a redis+cluster: URL')
  }
  const { redisOptions = {}, keyPrefix, natMap } = handle.options
  if ((keyPrefix ?? redisOptions.keyPrefix ?? '') !== '') {
    throw new EngineError(
      'ERR_ENGINE_URL',
      'this Cluster has a keyPrefix, which Lua scripts do not see; leave it out and give ?prefix= in a URL',
    )
  }
  const { Redis } = await import('ioredis')
  const template = new Redis({ ...redisOptions, lazyConnect: true }) as unknown as RedisClient
  return {
    seeds: handle.startupNodes.map(toNode),
    template,
    isTls: redisOptions.tls !== undefined,
    reachedAt: (announced) => mapped(natMap, announced),
  }
}

function isClusterHandle(handle: object): handle is ClusterHandle {
  return Array.isArray(Reflect.get(handle, 'startupNodes')) && typeof Reflect.get(handle, 'options') === 'object'
}

function toNode(node: unknown): HostPort {
  if (typeof node === 'number') return { host: '127.0.0.1', port: node }
  if (typeof node === 'string') {
    const { hostname, port } = new URL(node.includes('://') ? node : `redis://${node}`)
    return { host: hostname, port: Number(port || 6379) }
  }
  const field = (name: string): unknown => (typeof node === 'object' && node !== null ? Reflect.get(node, name) : null)
  return { host: String(field('host') ?? '127.0.0.1'), port: Number(field('port') ?? 6379) }
}

/** `natMap` of ioredis: an object by `host:port`, or a function of it. */
function mapped(natMap: unknown, announced: HostPort): HostPort {
  const name = `${announced.host}:${announced.port}`
  const found: unknown =
    typeof natMap === 'function'
      ? natMap(name)
      : typeof natMap === 'object' && natMap !== null
        ? Reflect.get(natMap, name)
        : null
  return typeof found === 'object' && found !== null ? toNode(found) : announced
}
