/** Records as jobs: by place, by id and newest first, with what the group has committed of each. */
import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { defineJob, open } from 'millrace'
import { UnsupportedError } from '../../src/errors.ts'
import { freshName, freshTopic, type KafkaServer, kafkaServer } from '../servers/kafka.ts'
import { claimed, complete, consume, dead, eventually, openEngine, produce, urlOf } from './kafka-fixtures.ts'

let server: KafkaServer
before(async () => {
  server = await kafkaServer()
})

const by = { who: 'ann', reason: 'test' }
const retry = {
  kind: 'retry',
  delayMs: 600_000,
  error: { name: 'Error', code: null, message: 'no', stack: null },
} as const

test('the latest records say whether they are settled, run, wait, are retried or dead, and what is not known is null', async (t) => {
  const topic = await freshTopic(server)
  const engine = await openEngine(urlOf(server, freshName('group')))
  t.after(() => engine.close())
  const nowMs = Date.now()
  await produce(
    server,
    ['a', 'b', 'c', 'd', 'e'].map((key, index) => ({ topic, key, value: `"${key}"`, timestampMs: nowMs + index })),
  )
  const consumer = await consume(engine, topic)
  const [a, b, c, d] = await claimed(consumer, 4)
  assert.ok(a && b && c && d)
  // The first stays open, so that the third is finished above what is committed.
  await consumer.settle([
    { lease: b, outcome: retry },
    { lease: c, outcome: complete },
    { lease: d, outcome: dead },
  ])
  const jobs = await engine.lookup.list({ type: topic, limit: 10 })
  assert.deepEqual(
    jobs.map(({ id, state, attempt, leaseOwner }) => [id, state, attempt, leaseOwner]),
    [
      [`${topic}:0:4`, 'queued', 0, null],
      [`${topic}:0:3`, 'dead_letter', 1, null],
      [`${topic}:0:2`, 'completed', 0, null],
      [`${topic}:0:1`, 'queued', 1, null],
      [`${topic}:0:0`, 'in_progress', 1, 'payout-executor-1'],
    ],
  )
  const [, died, done, retried, running] = jobs
  assert.deepEqual([died?.error?.message, died?.payload, died?.key], ['boom', '"d"', 'd'])
  assert.deepEqual([done?.result, done?.startedAtMs, done?.completedAtMs, done?.durationMs], [null, null, null, null])
  assert.ok((retried?.runAtMs ?? 0) > nowMs + 500_000, 'when it is due again')
  assert.deepEqual(running?.createdAtMs, nowMs)
  assert.deepEqual(await engine.lookup.list({ type: topic, state: 'in_progress', limit: 10 }), [running])
  assert.equal((await engine.lookup.oldestDue())?.id, `${topic}:0:4`)
  const pages = [await engine.lookup.list({ type: topic, limit: 3 })]
  pages.push(await engine.lookup.list({ type: topic, limit: 3, before: pages[0]?.at(-1)?.id ?? '' }))
  assert.deepEqual(pages.flat(), jobs)
  for (const state of ['queued', 'completed', 'dead_letter'] as const)
    await assert.rejects(
      engine.lookup.list({ type: topic, state, limit: 10 }),
      (error) => error instanceof UnsupportedError && error.message.includes(`by the state '${state}'`),
    )
  assert.deepEqual(await engine.lookup.list({ type: freshName('no-topic'), limit: 10 }), [])
  assert.deepEqual(await engine.lookup.find([`${topic}/0/4`, `${topic}:0:99`, `${topic}/7/0`, 'x']), [
    jobs[0],
    null,
    null,
    null,
  ])
})

test('a job is found by the id that enqueue gave, and after a replay it is the later record', async (t) => {
  const topic = await freshTopic(server, 'case', 3)
  const url = urlOf(server, freshName('group'))
  const mill = await open(url)
  t.after(() => mill.close())
  const bill = defineJob({ type: topic, attempts: 2 })
  const ids: string[] = []
  for (let nth = 0; nth < 12; nth += 1) ids.push((await mill.enqueue(bill, { nth })).id)
  const [wanted = ''] = ids.slice(7)
  assert.deepEqual([(await mill.job(wanted))?.state, (await mill.job(wanted))?.payload], ['queued', '{"nth":7}'])
  const engine = await openEngine(url)
  t.after(() => engine.close())
  const consumer = await consume(engine, topic)
  const leases = await claimed(consumer, 12)
  const isWanted = (id: string): boolean => id === wanted
  await consumer.settle(leases.map((lease) => ({ lease, outcome: isWanted(lease.job.id) ? dead : complete })))
  await eventually(async () => (await mill.job(wanted))?.state === 'dead_letter', 'its death')
  assert.deepEqual(await mill.engine.deadLetters?.requeue([wanted], by), [true])
  const replayed = await mill.job(wanted)
  assert.deepEqual([replayed?.id, replayed?.state, replayed?.replays, replayed?.attempt], [wanted, 'queued', 1, 0])
  // Its letter is there a moment before the commit that says that it is settled.
  const isSuperseded = async () =>
    (await mill.jobs({ type: topic, limit: 20 })).some((one) => one.state === 'superseded')
  await eventually(isSuperseded, 'the commit')
  const listed = await mill.jobs({ type: topic, limit: 20 })
  assert.deepEqual(
    listed
      .filter(({ payload }) => payload === '{"nth":7}')
      .map(({ id, state }) => [id.replace(/\/\d+\/\d+$/, ''), state]),
    [
      [wanted, 'queued'],
      [topic, 'superseded'],
    ],
  )
  const [original] = listed.filter(({ state }) => state === 'superseded')
  assert.deepEqual((await mill.job(original?.id ?? ''))?.state, 'superseded', 'the record at that place')
  // In one partition by the replay, in the others by their own records: no page repeats or leaves out one.
  const pages: string[] = []
  for (let before: string | undefined; ; ) {
    const page = await mill.jobs({ type: topic, limit: 4, ...(before !== undefined && { before }) })
    pages.push(...page.map(({ id }) => id))
    if (page.length < 4) break
    before = page.at(-1)?.id
  }
  assert.deepEqual(
    pages,
    listed.map(({ id }) => id),
  )
  assert.equal(new Set(pages).size, 13)
  await assert.rejects(mill.result(wanted, { timeout: '1s' }), /keeps no results and no histories/)
})

test('a page goes on by an id that another process printed, without a record twice', async (t) => {
  const topic = await freshTopic(server, 'case', 2)
  const url = urlOf(server, freshName('group'), '')
  const mill = await open(url)
  t.after(() => mill.close())
  await mill.enqueueMany(
    defineJob({ type: topic }),
    Array.from({ length: 30 }, (_, nth) => nth),
  )
  const all = (await mill.jobs({ type: topic, limit: 100 })).map(({ id }) => id)
  assert.equal(all.length, 30)
  const other = await open(url)
  t.after(() => other.close())
  const rest = await other.jobs({ type: topic, limit: 100, before: all[11] ?? '' })
  assert.deepEqual(
    rest.map(({ id }) => id),
    all.slice(12),
  )
  const placed = await other.job(`${topic}/1/0`)
  assert.ok(
    placed !== null && all.includes(placed.id),
    'a place is enough to find a record of a topic that is not known',
  )
})

test('for other groups a replay has the id of its place, so that a page ends at one record alone', async (t) => {
  const topic = await freshTopic(server)
  const engine = await openEngine(urlOf(server, freshName('group')))
  const mill = await open(urlOf(server, freshName('others')))
  t.after(() => Promise.all([engine.close(), mill.close()]))
  const bill = defineJob({ type: topic, attempts: 1 })
  const [first, second] = [(await mill.enqueue(bill, 1)).id, (await mill.enqueue(bill, 2)).id]
  const consumer = await consume(engine, topic)
  const leases = await claimed(consumer, 2)
  await consumer.settle(leases.map((lease) => ({ lease, outcome: lease.job.id === first ? dead : complete })))
  assert.deepEqual(await engine.deadLetters.requeue([first], by), [true])
  const listed: string[] = []
  for (let before: string | undefined; listed.length < 4; before = listed.at(-1)) {
    const [one] = await mill.jobs({ type: topic, limit: 1, ...(before !== undefined && { before }) })
    if (one === undefined) break
    listed.push(one.id)
  }
  assert.deepEqual(listed, [`${topic}/0/2`, second, first])
})
