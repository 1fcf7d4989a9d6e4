/** The outbox towards a real broker. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { before, describe, type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { z } from 'zod'
import { open } from '../../src/client/mill.ts'
import { defineJob } from '../../src/job/definition.ts'
import type { StoredJob } from '../../src/job/job.ts'
import { type OpenedOutbox, openOutbox } from '../../src/outbox/index.ts'
import { tempFiles } from '../fixtures/temp-files.ts'
import { claimed, complete, consume, eventually, openEngine, urlOf } from '../kafka/kafka-fixtures.ts'
import { freshName, freshTopic, type KafkaServer, kafkaServer, startKafka } from '../servers/kafka.ts'
import { outboxStores } from './outbox-stores.ts'

const files = tempFiles()
const stores = outboxStores()
let server: KafkaServer
before(async () => {
  server = await kafkaServer()
})

const step = (type: string) => defineJob({ type, payload: z.number(), backoff: { kind: 'fixed', delay: 10 } })
const upTo = (count: number): readonly number[] => Array.from({ length: count }, (_, n) => n)

async function opened(t: TestContext, store: string | object, target: string): Promise<OpenedOutbox> {
  const outbox = await openOutbox({ store, target, poll: 10, interval: 1_000, batch: 20 })
  t.after(() => outbox.close())
  return outbox
}

interface Wanted {
  readonly count: number
  /** Whether a job that is there twice counts once. */
  readonly isDistinct?: boolean
}

/** The jobs of a topic, in the order in which a worker gets them. */
async function jobsOf(
  t: TestContext,
  at: KafkaServer,
  topic: string,
  { count, isDistinct = false }: Wanted,
): Promise<readonly StoredJob[]> {
  const engine = await openEngine(urlOf(at, freshName('group')))
  t.after(() => engine.close())
  const consumer = await consume(engine, topic)
  const jobs: StoredJob[] = []
  await eventually(
    async () => {
      const leases = await claimed(consumer, 1, 500)
      jobs.push(...leases.map(({ job }) => job))
      await consumer.settle(leases.map((lease) => ({ lease, outcome: complete })))
      return (isDistinct ? new Set(jobs.map(({ id }) => id)).size : jobs.length) >= count
    },
    `${count} jobs of '${topic}'`,
    180_000,
  )
  // Whatever is there beyond them has time to show itself.
  jobs.push(...(await claimed(consumer, 1, 500)).map(({ job }) => job))
  return jobs
}

for (const store of stores) {
  describe(`from ${store.name} to Kafka`, () => {
    test('a commit arrives with its keys in order, a rollback never does', async (t) => {
      const topic = await freshTopic(server, 'outbox', 3)
      const job = step(topic)
      const mill = await open((await opened(t, await store.url(), urlOf(server, freshName('group')))).engine)
      const lost = await store.begin()
      await mill.enqueue(job, -1, { key: 'a', within: lost.within })
      await lost.end('ROLLBACK')
      const ids: string[] = []
      for (const n of upTo(30)) {
        const transaction = await store.begin()
        const { id } = await mill.enqueue(job, n, { key: `key-${n % 3}`, within: transaction.within })
        await transaction.end('COMMIT')
        ids.push(id)
      }
      const jobs = await jobsOf(t, server, topic, { count: 30 })
      assert.deepEqual(new Set(jobs.map(({ id }) => id)), new Set(ids))
      for (const key of ['key-0', 'key-1', 'key-2']) {
        const seen = jobs.filter((found) => found.key === key).map(({ payload }) => Number(payload))
        assert.deepEqual(
          seen,
          upTo(30).filter((n) => `key-${n % 3}` === key),
        )
      }
      assert.equal(jobs.length, 30)
    })

    test('a forwarder that is killed between the acknowledgement and the removal repeats that batch, with its ids', async (t) => {
      const topic = await freshTopic(server, 'killed')
      const url = await store.url()
      const target = urlOf(server, freshName('group'))
      const adding = await openOutbox({ store: url, target, forward: false })
      t.after(() => adding.close())
      const receipts = await (await open(adding.engine)).enqueueMany(step(topic), upTo(25))
      const ids = receipts.map(({ id }) => id)
      const script = fileURLToPath(new URL('./killed.ts', import.meta.url))
      const child = spawn(process.execPath, [script, url, target, '10'], {
        stdio: ['ignore', 'pipe', 'inherit'],
      })
      t.after(() => child.kill('SIGKILL'))
      const [line] = await once(createInterface({ input: child.stdout }), 'line')
      assert.deepEqual(JSON.parse(String(line)), ids.slice(0, 10))
      child.kill('SIGKILL')
      await once(child, 'exit')
      assert.equal((await adding.size()).jobs, 25)
      const next = await opened(t, url, target)
      await eventually(async () => (await next.size()).jobs === 0, 'an empty outbox', 60_000)
      const jobs = await jobsOf(t, server, topic, { count: 35 })
      assert.deepEqual(
        jobs.map(({ id }) => id),
        [...ids.slice(0, 10), ...ids],
      )
    })
  })
}

test('a broker that is unreachable at the start and dies later loses nothing, and everything arrives in order', async (t) => {
  const own = await startKafka()
  t.after(() => own.end())
  await own.stop()
  const topic = 'patient'
  const job = step(topic)
  const target = `${urlOf(own, freshName('group'))}&timeout=4000&partitions=1`
  const errors: unknown[] = []
  const outbox = await openOutbox({
    store: `sqlite:${files.next()}`,
    target,
    ...{ poll: 10, interval: 1_000, batch: 20, onError: (error) => void errors.push(error) },
  })
  t.after(() => outbox.close())
  const mill = await open(outbox.engine)
  await mill.enqueueMany(job, upTo(40))
  await eventually(() => errors.length >= 2, 'errors of an unreachable broker')
  assert.equal((await outbox.size()).jobs, 40)
  await own.start()
  await eventually(async () => (await outbox.size()).jobs === 0, 'an empty outbox', 60_000)
  await own.kill()
  for (const n of upTo(40)) await mill.enqueue(job, 40 + n)
  await own.start()
  await eventually(async () => (await outbox.size()).jobs === 0, 'an empty outbox again', 120_000)
  const jobs = await jobsOf(t, own, topic, { count: 80, isDistinct: true })
  // What was acknowledged by a broker that died before it could say so is there twice, under the same id.
  const first = [...new Map(jobs.map((found) => [found.id, Number(found.payload)])).values()]
  assert.deepEqual(first, upTo(80))
})
