/** What a record that waits for its retry keeps back, on a real broker. */
import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { open } from '../../src/client/mill.ts'
import { defineJob } from '../../src/job/definition.ts'
import { freshName, freshTopic, type KafkaServer, kafkaServer } from '../servers/kafka.ts'
import { eventually, produce, urlOf } from './kafka-fixtures.ts'

let server: KafkaServer
before(async () => {
  server = await kafkaServer()
})

const OTHERS = 20_000
const FIVE_MINUTES_MS = 300_000

interface Ran {
  readonly bad: unknown[]
  readonly others: unknown[]
}

/** A job whose key `bad` fails, and what of it ran. */
function failing(type: string, delayMs: number) {
  const ran: Ran = { bad: [], others: [] }
  const job = defineJob({
    type,
    attempts: 3,
    backoff: { kind: 'fixed', delay: delayMs },
    run: ({ payload, job: { key } }) => {
      if (key !== 'bad') return void ran.others.push(payload)
      ran.bad.push(payload)
      throw new Error('not now')
    },
  })
  return { job, ran }
}

// X152 X154 D31
test('a key that is retried after five minutes holds its own records, and no other key of its partition', async (t) => {
  const topic = await freshTopic(server, 'held')
  const mill = await open(urlOf(server, freshName('group')))
  t.after(() => mill.close())
  const { job, ran } = failing(topic, FIVE_MINUTES_MS)
  await mill.work([job], { concurrency: 50 })
  await produce(server, [
    { topic, key: 'bad', value: '0' },
    { topic, key: 'bad', value: '1' },
  ])
  await eventually(() => ran.bad.length === 1, 'the failure', 30_000)
  // More than a buffer and more than a bitmap of offsets has room for.
  for (let from = 0; from < OTHERS; from += 5_000)
    await produce(
      server,
      Array.from({ length: 5_000 }, (_, n) => ({ topic, key: `k${n % 50}`, value: String(from + n) })),
    )
  // A handler that has returned is not yet a settled job, so what is waited for is the count of those.
  const completed = async () => (await mill.counts())[topic]?.completed === OTHERS
  await eventually(completed, 'the end of all other keys', 180_000)
  assert.equal(ran.others.length, OTHERS)
  assert.deepEqual(ran.bad, [0])
  const counts = (await mill.counts())[topic]
  assert.deepEqual(counts, { ready: 1, delayed: 1, inProgress: 0, completed: OTHERS, dead: 0 })
})

// X154
test('where a topic says so its partition is held, and the topic beside it is not', async (t) => {
  const [held, free] = [await freshTopic(server, 'ordered'), await freshTopic(server, 'free')]
  const mill = await open(urlOf(server, freshName('group'), `&hold=${held}:partition`))
  t.after(() => mill.close())
  const [one, other] = [failing(held, FIVE_MINUTES_MS), failing(free, FIVE_MINUTES_MS)]
  await produce(server, [
    { topic: held, key: 'bad', value: '0' },
    { topic: free, key: 'bad', value: '0' },
  ])
  await mill.work([one.job, other.job])
  await eventually(() => one.ran.bad.length === 1 && other.ran.bad.length === 1, 'both failures', 30_000)
  const records = [held, free].flatMap((topic) =>
    Array.from({ length: 20 }, (_, n) => ({ topic, key: `k${n}`, value: '1' })),
  )
  await produce(server, records)
  await eventually(() => other.ran.others.length === 20, 'the keys of the other topic', 30_000)
  assert.deepEqual(one.ran.others, [])
})

test('a partition that is held goes on when its record has run again, in its order', async (t) => {
  const topic = await freshTopic(server, 'resumed')
  const mill = await open(urlOf(server, freshName('group'), '&hold=partition'))
  t.after(() => mill.close())
  const { job, ran } = failing(topic, 300)
  await produce(server, [{ topic, key: 'bad', value: '0' }])
  await mill.work([job])
  await eventually(() => ran.bad.length === 1, 'the first failure', 30_000)
  await produce(server, [{ topic, key: 'good', value: '1' }])
  await eventually(() => ran.others.length === 1, 'the record behind it', 30_000)
  assert.equal(ran.bad.length, 3, 'it ran before the one that held it was dead')
})
