/** Faults of the server's process: it is away, stands still, or has no time for anyone. */
import { type OwnRedis, withRedis } from '../../servers/redis.ts'
import { forAWhile, type RedisFault, type RedisTarget, untilInfo, withSetting } from './redis-target.ts'

const restart: RedisFault = {
  name: 'redis-restart',
  does: 'stops the server in an orderly way and starts it again with its data',
  async strike({ server }, random) {
    await server.stop()
    await forAWhile(random, 1_500)
    await server.start()
  },
}

/** With `appendfsync always` nothing that was acknowledged may be missing afterwards. */
const crash: RedisFault = {
  name: 'redis-crash',
  does: 'ends the server with SIGKILL and starts it again with what its append-only file has',
  async strike({ server }, random) {
    await server.kill()
    await forAWhile(random, 1_500)
    await server.start()
  },
}

const freeze: RedisFault = {
  name: 'redis-freeze',
  does: 'stops the server with SIGSTOP, at times for longer than a lease, and lets it go on',
  async strike(target, random) {
    const pid = Number(await target.info('process_id'))
    process.kill(pid, 'SIGSTOP')
    try {
      await forAWhile(random)
    } finally {
      process.kill(pid, 'SIGCONT')
    }
  },
}

/** After this the server answers others with BUSY. */
const BUSY_AFTER_MS = 20

const busy: RedisFault = {
  name: 'redis-busy',
  does: 'keeps the server busy with a script that does not end, so that it answers BUSY, and kills the script',
  strike: (target, random) =>
    withSetting(target, { name: 'lua-time-limit', to: BUSY_AFTER_MS, back: 5_000 }, async (redis) => {
      // Connected before: the driver asks a new connection for INFO, which is answered with BUSY too.
      await target.ask(async (other) => {
        // It ends with the error that it was killed.
        const ended = Promise.allSettled([redis.eval('while true do end', 0)])
        await forAWhile(random, 2_000)
        await other.script('KILL')
        await ended
      })
    }),
}

const snapshot: RedisFault = {
  name: 'redis-snapshot',
  does: 'lets the server rewrite its append-only file and write a snapshot under load',
  async strike(target) {
    await target.ask(async (redis) => {
      await redis.bgrewriteaof()
      await redis.call('BGSAVE', 'SCHEDULE')
    })
    await untilInfo(target.server, { aof_rewrite_in_progress: '0', rdb_bgsave_in_progress: '0' })
  },
}

/** The next primary, while it copies the one of now. */
const replicas = new WeakMap<RedisTarget, OwnRedis>()

/** Replication is asynchronous: what was answered within its lag is undone. On a sound network that is milliseconds. */
const LAG_MS = 1_000

const failover: RedisFault = {
  name: 'redis-failover',
  does: 'ends the server with SIGKILL and puts its replica in its place, which may not have had the last of it',
  allows: ['lose-recent'],
  recentMs: LAG_MS,
  async prepare(target) {
    const replica = await target.startOther()
    await withRedis(replica.url, (redis) => redis.replicaof('127.0.0.1', target.server.port))
    // Before its own file is written it would lose everything with a crash.
    await untilInfo(replica, { master_link_status: 'up', aof_rewrite_scheduled: '0', aof_rewrite_in_progress: '0' })
    replicas.set(target, replica)
  },
  async strike(target, random) {
    const [primary, replica] = [target.server, replicas.get(target)]
    if (replica === undefined) throw new Error('there is no replica')
    await primary.kill()
    await forAWhile(random, 1_000)
    await withRedis(replica.url, (redis) => redis.replicaof('NO', 'ONE'))
    target.replaceServer(replica)
    await primary.end()
  },
}

export const SERVER_FAULTS: readonly RedisFault[] = [restart, crash, freeze, busy, snapshot, failover]
