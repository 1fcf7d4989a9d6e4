/** Faults of what the server keeps and takes: full, empty, read-only, without its scripts, and others in the same keys. */
import { setTimeout as sleep } from 'node:timers/promises'
import { Queue, QueueEvents, Worker } from 'bullmq'
import { forAWhile, type RedisFault, type RedisTarget, withSetting } from './redis-target.ts'

const full: RedisFault = {
  name: 'redis-full',
  does: 'lets the server reach its maxmemory, so that it refuses what needs more',
  async strike(target, random) {
    const used = Number(await target.info('used_memory'))
    await withSetting(target, { name: 'maxmemory', to: Math.floor(used / 2), back: 0 }, () => forAWhile(random))
  },
}

/** Without a memory limit the server evicts nothing, but an engine that is opened meanwhile refuses it. */
const policy: RedisFault = {
  name: 'redis-policy',
  does: 'sets an eviction policy with which jobs may be thrown away, for a while',
  strike: (target, random) =>
    withSetting(target, { name: 'maxmemory-policy', to: 'allkeys-lru', back: 'noeviction' }, () => forAWhile(random)),
}

const scripts: RedisFault = {
  name: 'redis-scripts',
  does: 'lets the server forget all scripts, a few times in a row',
  async strike(target, random) {
    for (let left = 5; left > 0; left -= 1) {
      await target.ask((redis) => redis.script('FLUSH', 'SYNC'))
      await sleep(random() * 200)
    }
  },
}

/** It has no primary that it could copy, so it keeps what it has. */
const replica: RedisFault = {
  name: 'redis-replica',
  does: 'makes the server a replica of no server, so that it refuses writes, and a primary again',
  async strike(target, random) {
    await target.ask((redis) => redis.replicaof('127.0.0.1', 1))
    try {
      await forAWhile(random)
    } finally {
      await target.ask((redis) => redis.replicaof('NO', 'ONE'))
    }
  },
}

/** One kind for both ways, so that not every round loses most of what could be judged. */
const empty: RedisFault = {
  name: 'redis-empty',
  does: 'empties the server with FLUSHALL, or ends it with SIGKILL and starts it again without its data',
  allows: ['lose-all'],
  async strike(target, random) {
    if (random() < 0.5) await target.ask((redis) => redis.flushall())
    else {
      await target.server.kill()
      await target.server.start('gone')
    }
  },
}

/**
 * What BullMQ's dashboards and idle workers do: they read, listen, pause a queue, and look for stalled jobs, whose locks
 * are gone. None of it takes a job away from Millrace.
 */
const bullmq: RedisFault = {
  name: 'redis-bullmq',
  does: "lets BullMQ's own programs read, listen, look for stalled jobs, and pause a queue and resume it",
  async strike(target, random) {
    const names = await target.ask((redis) => redis.smembers(`${target.prefix}::types`))
    const name = names.toSorted()[Math.floor(random() * names.length)]
    if (name !== undefined) await meddle(target, name, random)
  },
}

async function meddle(target: RedisTarget, name: string, random: () => number): Promise<void> {
  const options = { prefix: target.prefix, connection: { url: target.server.url, maxRetriesPerRequest: null } }
  const queue = new Queue(name, options)
  const events = new QueueEvents(name, options)
  // Without a function it takes no jobs. One that stalls often is left to Millrace, which counts its starts.
  const worker = new Worker(name, null, { ...options, stalledInterval: 200, maxStalledCount: 1_000 })
  try {
    await Promise.all([events.waitUntilReady(), worker.waitUntilReady()])
    await worker.startStalledCheckTimer()
    await queue.pause()
    for (let looks = 5; looks > 0; looks -= 1) {
      await queue.getJobCounts()
      await queue.getJobs(['active', 'wait', 'delayed', 'failed'], 0, 20)
      await forAWhile(random, 300)
    }
    await queue.resume()
    await forAWhile(random, 600)
  } finally {
    await queue.resume()
    await Promise.all([queue, events, worker].map((one) => one.close()))
  }
}

export const DATA_FAULTS: readonly RedisFault[] = [full, policy, scripts, replica, empty, bullmq]
