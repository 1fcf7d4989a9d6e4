/** A Redis of its own for each round: it is killed, emptied and configured anew. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { CAPABILITIES } from '../../../src/engines/redis/engine.ts'
import { freshPrefix, type OwnRedis, startRedis } from '../../servers/redis.ts'
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
  const start = (): Promise<OwnRedis> =>
    startRedis({ aof: 'always', settings: { aclfile, 'repl-diskless-sync-delay': '0' } })
  const target = new RedisTarget(await start(), freshPrefix(), start)
  const [wire, direct] = [new TcpWire(), new TcpWire()]
  const [near, beside] = [await wire.front(target.address), await direct.front(target.address)]
  const query = `prefix=${target.prefix}&timeout=${TIMEOUTS_MS[seed % 2]}`
  const url = `redis://${LOGIN.user}:${LOGIN.password}@${near.host}:${near.port}?${query}`
  return {
    engine: 'redis',
    capabilities: CAPABILITIES,
    url,
    // Leads to the server that is the last to take the place of another.
    directUrl: `redis://${beside.host}:${beside.port}?prefix=${target.prefix}`,
    wire,
    nemeses: redisNemeses(target),
    producers: producersFor(url),
    async destroy() {
      for (const one of [wire, direct]) one.close()
      await target.server.end()
    },
  }
}
