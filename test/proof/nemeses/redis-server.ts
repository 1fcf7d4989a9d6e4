/** Faults of the server's process: it is away, stands still, or has no time for anyone. */
import { setTimeout as sleep } from 'node:timers/promises'
import { forAWhile, type RedisFault, type RedisTarget, withSetting } from './redis-target.ts'

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
    await until(target, { aof_rewrite_in_progress: '0', rdb_bgsave_in_progress: '0' })
  },
}

async function until(target: RedisTarget, wanted: Readonly<Record<string, string>>): Promise<void> {
  for (const [name, value] of Object.entries(wanted)) while ((await target.info(name)) !== value) await sleep(50)
}

export const SERVER_FAULTS: readonly RedisFault[] = [restart, crash, freeze, busy, snapshot]
