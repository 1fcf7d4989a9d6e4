/** Faults of the server towards its clients: it ends their connections, takes no new ones, or lets them wait. */
import type { Redis } from 'ioredis'
import { forAWhile, LOGIN, type RedisFault, type RedisTarget, withSetting } from './redis-target.ts'

/** `share`: of the connections of the round's processes. */
async function endConnections(target: RedisTarget, redis: Redis, random: () => number, share: number): Promise<void> {
  for (const id of await target.connections(redis)) if (random() < share) await redis.call('CLIENT', 'KILL', 'ID', id)
}

const disconnect: RedisFault = {
  name: 'redis-disconnect',
  does: 'ends some or all connections with CLIENT KILL, a few times in a row',
  async strike(target, random) {
    const share = random() < 0.5 ? 1 : 0.3
    for (let left = 1 + Math.floor(random() * 4); left > 0; left -= 1) {
      await target.ask((redis) => endConnections(target, redis, random, share))
      await forAWhile(random, 400)
    }
  },
}

const pause: RedisFault = {
  name: 'redis-pause',
  does: 'lets all commands, or those that write, wait with CLIENT PAUSE',
  async strike(target, random) {
    const ms = Math.round(300 + random() * 2_000)
    await target.ask((redis) => redis.call('CLIENT', 'PAUSE', ms, random() < 0.5 ? 'WRITE' : 'ALL'))
    // It waits as long as the others.
    await target.ask((redis) => redis.set('proof:pause', ms, 'PX', 1))
  },
}

const limit: RedisFault = {
  name: 'redis-maxclients',
  does: 'ends half of the connections while maxclients is reached, so that new ones are refused',
  strike: (target, random) =>
    withSetting(target, { name: 'maxclients', to: 1, back: 10_000 }, async (redis) => {
      await endConnections(target, redis, random, 0.5)
      await forAWhile(random)
    }),
}

const password: RedisFault = {
  name: 'redis-password',
  does: 'gives the user of the processes another password, ends their connections, and gives the old one back',
  async strike(target, random) {
    const give = (secret: string): Promise<unknown> =>
      target.ask((redis) => redis.call('ACL', 'SETUSER', LOGIN.user, 'resetpass', `>${secret}`))
    await give('another')
    try {
      await target.ask((redis) => endConnections(target, redis, random, 1))
      await forAWhile(random)
    } finally {
      await give(LOGIN.password)
    }
  },
}

export const CONNECTION_FAULTS: readonly RedisFault[] = [disconnect, pause, limit, password]
