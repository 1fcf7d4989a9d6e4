/**
 * The ceiling on Redis: a hash for each job, a list of those that wait, and one script that completes a batch and claims
 * the next. What an engine adds to it is what its promises cost.
 */
import { Redis } from 'ioredis'
import type { Contender, Place, Working, WorkRequest } from '../contender.ts'
import type { Payload } from '../payload.ts'
import { addressOf, prefixOf } from '../servers/redis.ts'
import { workInTurns } from './turns.ts'

const CLAIM_SIZE = 500
/** Two loops, so that the server has something to do while this process looks at what it got. */
const LOOPS = 2
const LEASE_MS = 60_000

/** KEYS: waiting. ARGV: prefix of jobs, time, then a payload each. */
const INSERT = `
for n = 3, #ARGV do
  local id = redis.call('INCR', ARGV[1] .. 'id')
  redis.call('HSET', ARGV[1] .. id, 'data', ARGV[n], 'timestamp', ARGV[2], 'priority', 5)
  redis.call('LPUSH', KEYS[1], id)
end`

/** KEYS: waiting, active, completed. ARGV: prefix of jobs, time, lease, token, how many to claim, then those done. */
const TURN = `
for n = 6, #ARGV do
  local job = ARGV[1] .. ARGV[n]
  if redis.call('GET', job .. ':lock') == ARGV[4] then
    redis.call('DEL', job .. ':lock')
    redis.call('ZREM', KEYS[2], ARGV[n])
    redis.call('ZADD', KEYS[3], ARGV[2], ARGV[n])
    redis.call('HSET', job, 'finishedOn', ARGV[2], 'returnvalue', 'null')
  end
end
local claimed = {}
if ARGV[5] == '0' then return claimed end
for n, id in ipairs(redis.call('RPOP', KEYS[1], ARGV[5]) or {}) do
  local job = ARGV[1] .. id
  redis.call('SET', job .. ':lock', ARGV[4], 'PX', ARGV[3])
  redis.call('ZADD', KEYS[2], ARGV[2], id)
  redis.call('HSET', job, 'processedOn', ARGV[2])
  claimed[2 * n - 1], claimed[2 * n] = id, redis.call('HGET', job, 'data')
end
return claimed`

interface Held {
  readonly id: string
  readonly payload: Payload
}

class BareRedis implements Contender {
  readonly bulkSize = 1_000
  #redis: Redis | null = null
  #prefix = ''

  async setup({ url }: Place): Promise<void> {
    if (url === null) throw new Error('the bare store needs a server')
    this.#prefix = prefixOf(url)
    this.#redis = new Redis(addressOf(url))
    await this.#redis.ping()
  }

  async enqueueOne(payload: Payload): Promise<void> {
    await this.enqueueBulk([payload])
  }

  async enqueueBulk(payloads: readonly Payload[]): Promise<void> {
    const args = [this.#key('job:'), Date.now(), ...payloads.map((payload) => JSON.stringify(payload))]
    await this.#opened.call('EVAL', INSERT, 1, this.#key('waiting'), ...args)
  }

  async work(request: WorkRequest): Promise<Working> {
    return workInTurns<Held>(request, (held, max) => this.#turn(held, max), { loops: LOOPS, size: CLAIM_SIZE })
  }

  async remaining(): Promise<number> {
    return (await this.#opened.llen(this.#key('waiting'))) + (await this.#opened.zcard(this.#key('active')))
  }

  async teardown(): Promise<void> {
    await this.#opened.quit()
  }

  /** Completes what is held and claims the next, in one call. */
  async #turn(held: readonly Held[], max: number): Promise<readonly Held[]> {
    const keys = [this.#key('waiting'), this.#key('active'), this.#key('completed')]
    const args = [this.#key('job:'), Date.now(), LEASE_MS, `bench:${process.pid}`, max, ...held.map(({ id }) => id)]
    const claimed = await this.#opened.call('EVAL', TURN, keys.length, ...keys, ...args)
    if (!Array.isArray(claimed)) throw new Error('the script answers with a list')
    const jobs: Held[] = []
    for (let at = 0; at < claimed.length; at += 2) {
      jobs.push({ id: String(claimed[at]), payload: JSON.parse(String(claimed[at + 1])) })
    }
    return jobs
  }

  #key(name: string): string {
    return `${this.#prefix}:${name}`
  }

  get #opened(): Redis {
    if (this.#redis === null) throw new Error('setup comes first')
    return this.#redis
  }
}

export function create(): Contender {
  return new BareRedis()
}
