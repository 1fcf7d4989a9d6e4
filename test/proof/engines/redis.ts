/** A Redis of its own for each round: it is killed, emptied and configured anew. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { CAPABILITIES } from '../../../src/engines/redis/engine.ts'
import { freshPrefix, startRedis } from '../../servers/redis.ts'
import { redisNemeses } from '../nemeses/redis.ts'
import { LOGIN, RedisTarget } from '../nemeses/redis-target.ts'
import type { OpenStore } from '../scene.ts'

/** Read at every start, so that a server that comes back knows the user. */
const USERS = `user default on nopass ~* &* +@all\nuser ${LOGIN.user} on >${LOGIN.password} ~* &* +@all\n`

export const openRedisStore: OpenStore = async ({ folder }) => {
  const aclfile = join(folder, 'users.acl')
  writeFileSync(aclfile, USERS)
  // With `always` a crash takes nothing back (docs/operating-redis.md), so every loss is a violation.
  const server = await startRedis({ aof: 'always', settings: { aclfile } })
  const target = new RedisTarget(server, freshPrefix())
  const urlOf = (port: number): string =>
    `redis://${LOGIN.user}:${LOGIN.password}@127.0.0.1:${port}?prefix=${target.prefix}`
  return {
    engine: 'redis',
    capabilities: CAPABILITIES,
    url: urlOf(server.port),
    directUrl: `${server.url}?prefix=${target.prefix}`,
    wire: null,
    nemeses: redisNemeses(target),
    producers: [],
    destroy: () => server.end(),
  }
}
