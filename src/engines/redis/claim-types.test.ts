/** Claims of many types, which ask ten queues at once whether they have any jobs before they ask one in detail. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { Redis } from 'ioredis'
import { newJob } from '../../../test/fixtures/new-job.ts'
import { dropPrefix, prefixUrl, redisServer } from '../../../test/servers/redis.ts'
import type { NewJob } from '../../job/job.ts'
import { seededRandom } from '../../testing/open-for-test.ts'
import { TestClock } from '../../testing/test-clock.ts'
import { RedisDatabase } from './database.ts'
import { claimScript } from './lua/claim.ts'
import { claimPlainScript } from './lua/claim-plain.ts'
import { connect } from './module.ts'
import { parseUrl } from './options.ts'
import { listOf } from './rows.ts'

const LEASE_MS = 60_000
/** Two groups of ten, and one of five. */
const TYPES = Array.from({ length: 25 }, (_, index) => `mail-${index + 1}`)
const never = new AbortController().signal

/** An empty store, whose clock stands still. */
async function stage(t: TestContext) {
  const server = await redisServer()
  const { url, prefix } = prefixUrl(server)
  const { address, options } = parseUrl(url)
  const clock = new TestClock()
  const engine = await connect(url, { clock, migrate: true })
  const database = new RedisDatabase({ source: { address }, clock, options })
  await database.reach()
  t.after(async () => {
    database.close()
    await engine.close()
    await dropPrefix(server.url, prefix)
  })
  let claims = 0
  const token = (): string => {
    claims += 1
    return `token.${claims}.`
  }
  /** `isFull`: every queue is asked in detail. */
  const claim = async (max: number, isFull = false): Promise<Found> => {
    const each = TYPES.flatMap((type) => [type, LEASE_MS, max, '', '', '', ''])
    const args = ['w', token(), max, TYPES.length, isFull ? 1 : 0, ...each]
    return read(await database.run(claimScript(), args))
  }
  const claimOne = async (type: string): Promise<Found> =>
    read(await database.run(claimPlainScript(), ['w', token(), 1_000, type, LEASE_MS]))
  return { server, engine, prefix, call: database.call.bind(database), claim, claimOne }
}

interface Found {
  /** When to look again; -1 is never. */
  readonly lookInMs: number
  readonly ids: readonly string[]
}

function read(answer: unknown): Found {
  const [lookInMs, jobs] = answer === null ? [-1, []] : listOf(answer)
  const ids = listOf(jobs).filter((_, index) => index % 3 === 1)
  return { lookInMs: Number(lookInMs), ids: ids.map(String) }
}

/** Every command of a script that ran meanwhile, if it names a key of this prefix. */
async function commandsOf(url: string, prefix: string, run: () => Promise<unknown>): Promise<readonly string[][]> {
  const redis = new Redis(url)
  const monitor = await redis.monitor()
  try {
    const seen: string[][] = []
    const over = Promise.withResolvers<void>()
    monitor.on('monitor', (_time: string, args: string[], source: string) => {
      if (args[1] === `over ${prefix}`) over.resolve()
      else if (source === 'lua' && args[1]?.startsWith(`${prefix}:`) === true) seen.push(args)
    })
    await run()
    await redis.echo(`over ${prefix}`)
    await over.promise
    return seen
  } finally {
    monitor.disconnect()
    redis.disconnect()
  }
}

/** How many queues were asked at once, and which of them were asked anything else. */
function asked(commands: readonly string[][], prefix: string) {
  const typeOf = (key = ''): string => key.slice(prefix.length + 1).split(':')[0] ?? ''
  const isGroup = ([name, ...keys]: readonly string[]): boolean => name?.toLowerCase() === 'exists' && keys.length >= 3
  const groups = commands.filter(isGroup).map(([, ...keys]) => [...new Set(keys.map(typeOf))])
  const rest = commands.filter((command) => !isGroup(command)).map(([, key]) => typeOf(key))
  const inDetail = TYPES.filter((type) => rest.includes(type))
  return { groups, inDetail }
}

test('of 25 types, jobs of the first, the last and those at the edges of a group start in order of priority', async (t) => {
  const { engine } = await stage(t)
  const types = TYPES.map((type) => ({ type, leaseMs: LEASE_MS }))
  const consumer = await engine.consume({ types, worker: 'w' })
  const claim = () => consumer.claim({ max: 10, waitMs: 0, signal: never })
  // The first claim asks for pauses too, and by this clock no second passes until the next.
  assert.deepEqual(await claim(), [])
  const wanted = ['mail-25', 'mail-11', 'mail-1', 'mail-20', 'mail-10', 'mail-21']
  const jobs = wanted.map((type, index) => newJob({ type, priority: index + 1 }))
  await engine.enqueue(jobs.toReversed())
  assert.deepEqual(
    (await claim()).map(({ job }) => [job.type, job.id]),
    jobs.map(({ type, id }) => [type, id]),
  )
  assert.deepEqual(await claim(), [])
})

test('queues without jobs are asked ten at once, and never in detail', async (t) => {
  const { server, engine, prefix, call, claim } = await stage(t)
  const askedBy = async (run: () => Promise<unknown>) => asked(await commandsOf(server.url, prefix, run), prefix)
  const [first, second, third] = [TYPES.slice(0, 10), TYPES.slice(10, 20), TYPES.slice(20)]
  await claim(10)
  assert.deepEqual(await askedBy(() => claim(10)), { groups: [first, second, third], inDetail: [] })
  await engine.enqueue([newJob({ type: 'mail-11' })])
  const each = second.map((type) => [type])
  const found = await askedBy(() => claim(10))
  assert.deepEqual(found, { groups: [first, second, ...each, third], inDetail: ['mail-11'] })
  // A claim that looks for pauses asks each of them.
  await call('hset', `${prefix}:mail-5:meta`, 'paused', '1')
  assert.equal((await claim(10)).lookInMs, -1)
  assert.deepEqual((await askedBy(() => claim(10, true))).inDetail, TYPES)
  assert.equal((await claim(10, true)).lookInMs, 1_000)
})

interface Job {
  readonly job: NewJob
  /** In BullMQ's list, delayed until its time, or by priority. */
  readonly place: 'list' | 'due' | 'later' | 'priority'
  readonly cameMs: number
}

/** Thirty jobs in about half of the queues; the others are empty. */
function randomJobs(seed: number): readonly Job[] {
  const random = seededRandom(seed)
  const pick = (below: number): number => Math.floor(random() * below)
  const used = TYPES.filter(() => random() < 0.5)
  const places = ['list', 'due', 'later', 'priority', 'priority', 'priority'] as const
  return Array.from({ length: 30 }, () => ({
    job: newJob({ type: used[pick(used.length)] ?? 'mail-1', priority: 1 + pick(4) }),
    place: places[pick(places.length)] ?? 'priority',
    cameMs: pick(5) + 1,
  }))
}

const DELAY_MS = 7_000

async function store(jobs: readonly Job[], { engine, prefix, call }: Awaited<ReturnType<typeof stage>>): Promise<void> {
  const delayMs = ({ place }: Job): number => (place === 'due' || place === 'later' ? DELAY_MS : 0)
  await engine.enqueue(jobs.map((one) => ({ ...one.job, delayMs: delayMs(one) })))
  for (const { job, place, cameMs } of jobs) {
    const key = (name: string): string => `${prefix}:${job.type}:${name}`
    await call('hset', key(job.id), 'timestamp', cameMs)
    await call('hdel', key(job.id), 'mrRun')
    if (place === 'due') await call('zadd', key('delayed'), 1, job.id)
    if (place === 'list') {
      await call('zrem', key('prioritized'), job.id)
      await call('lpush', key('wait'), job.id)
    }
  }
}

test('a queue is not empty if all it has is in BullMQ’s list, due or to come', async (t) => {
  const staged = await stage(t)
  const alone = (type: string, place: Job['place']): Job => ({ job: newJob({ type, priority: 1 }), place, cameMs: 1 })
  const jobs = [alone('mail-10', 'list'), alone('mail-11', 'due'), alone('mail-25', 'later')]
  await store(jobs, staged)
  const [listed, due] = jobs.map(({ job }) => job.id)
  assert.deepEqual(await staged.claim(10), { lookInMs: DELAY_MS, ids: [listed, due] })
})

/** The order in which several queues together are emptied, from the order of each. */
function merged(queues: readonly (readonly string[])[], jobs: readonly Job[]): readonly string[] {
  const known = new Map(jobs.map((one) => [one.job.id, one]))
  const rankOf = (id: string): readonly [number, number] => {
    const one = known.get(id)
    return [one?.place === 'list' ? 0 : (one?.job.priority ?? 0), one?.cameMs ?? 0]
  }
  const isBefore = (one: string, other: string): boolean => {
    const [[rank, came], [otherRank, otherCame]] = [rankOf(one), rankOf(other)]
    if (rank !== otherRank) return rank < otherRank
    return came === otherCame ? one < other : came < otherCame
  }
  const left = queues.filter(({ length }) => length > 0).map((ids) => [...ids])
  const order: string[] = []
  while (left.length > 0) {
    const best = left.reduce((one, other) => (isBefore(other[0] ?? '', one[0] ?? '') ? other : one))
    order.push(best.shift() ?? '')
    if (best.length === 0) left.splice(left.indexOf(best), 1)
  }
  return order
}

for (const seed of [1, 2, 3]) {
  test(`groups of queues change no claim: it is as if each type were claimed alone, seed ${seed}`, async (t) => {
    const jobs = randomJobs(seed)
    const [grouped, full, single] = await Promise.all([1, 2, 3].map(() => stage(t)))
    assert.ok(grouped && full && single)
    for (const one of [grouped, full, single]) {
      await store(jobs, one)
      // The first with jobs.
      if (seed === 2) await one.call('hset', `${one.prefix}:${jobs[0]?.job.type}:meta`, 'paused', '1')
    }
    const queues: (readonly string[])[] = []
    for (const type of TYPES) queues.push((await single.claimOne(type)).ids)
    const order = merged(queues, jobs)
    assert.ok(order.length > 10, `${order.length} jobs`)
    for (let from = 0; from <= order.length; from += 10) {
      const found: Found = await grouped.claim(10)
      assert.deepEqual(found.ids, order.slice(from, from + 10))
      assert.deepEqual(await full.claim(10, true), found)
    }
  })
}
