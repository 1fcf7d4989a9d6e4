/** A Redis of its own for each round: it is killed, emptied and configured anew. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { CAPABILITIES } from '../../../src/engines/redis/engine.ts'
import { freshPrefix, startRedis } from '../../servers/redis.ts'
import { redisNemeses } from '../nemeses/redis.ts'
import { LOGIN, RedisTarget } from '../nemeses/redis-target.ts'
import { producersFor } from '../producers/index.ts'
import type { OpenStore } from '../scene.ts'
import { TcpWire } from '../wire.ts'

/** Read at every start, so that a server that comes back knows the user. */
const USERS = `user default on nopass ~* &* +@all\nuser ${LOGIN.user} on >${LOGIN.password} ~* &* +@all\n`

/** A call that takes longer is given up: shorter than most faults in every second round, longer in the others. */
const TIMEOUTS_MS = [1_500, 5_000] as const

export const openRedisStore: OpenStore = async ({ seed, folder }) => {
  const aclfile = join(folder, 'users.acl')
  writeFileSync(aclfile, USERS)
  // With `always` a crash takes nothing back (docs/operating-redis.md), so every loss is a violation.
  const server = await startRedis({ aof: 'always', settings: { aclfile } })
  const target = new RedisTarget(server, freshPrefix())
  const wire = new TcpWire()
  const directUrl = `${server.url}?prefix=${target.prefix}`
  const url = new URL(await wire.through(directUrl))
  url.username = LOGIN.user
  url.password = LOGIN.password
  url.searchParams.set('timeout', String(TIMEOUTS_MS[seed % 2]))
  return {
    engine: 'redis',
    capabilities: CAPABILITIES,
    url: url.href,
    directUrl,
    wire,
    nemeses: redisNemeses(target),
    producers: producersFor(url.href),
    async destroy() {
      wire.close()
      await server.end()
    },
  }
}
