/** Brokers that freeze, go away and come back under load, and members whose event loop stands still. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { test } from 'node:test'
import { setTimeout as pass } from 'node:timers/promises'
import { open } from '../../src/client/mill.ts'
import { defineJob } from '../../src/job/definition.ts'
import { newJob } from '../fixtures/new-job.ts'
import { freshName, freshTopic, groupOffsets, kafkaServer, type OwnKafka, startKafka } from '../servers/kafka.ts'
import {
  briefUrlOf,
  claimed,
  complete,
  consume,
  eventually,
  openEngine,
  produce,
  SESSION_MS,
  startHolder,
  urlOf,
  urlWith,
} from './kafka-fixtures.ts'

/** Longer than the session of the workers. */
const AWAY_MS = 8_000
const OUTLIVED_MS = 6_000

const OUTAGES: readonly {
  readonly name: string
  readonly begin: (server: OwnKafka) => Promise<void>
  readonly end: (server: OwnKafka) => Promise<void>
}[] = [
  { name: 'frozen', begin: (server) => server.freeze(), end: (server) => server.thaw() },
  { name: 'stopped', begin: (server) => server.stop(), end: (server) => server.start() },
]

for (const { name, begin, end } of OUTAGES) {
  test(`a broker that is ${name} for longer than a session loses nothing, and all goes on by itself`, async (t) => {
    const server = await startKafka()
    t.after(() => server.end())
    const group = freshName('group')
    const mill = await open(urlWith(server, group, OUTLIVED_MS, '&timeout=4000&partitions=3'))
    t.after(() => mill.close())
    // A producer that only writes before the outage can wait for a busy machine.
    const writer = await open(urlOf(server, group, '&partitions=3'))
    t.after(() => writer.close())
    const ran = new Map<unknown, number>()
    const job = defineJob({
      type: 'outage',
      backoff: { kind: 'fixed', delay: 10 },
      lease: '60s',
      run: async ({ payload }) => {
        ran.set(payload, (ran.get(payload) ?? 0) + 1)
        await pass(20)
      },
    })
    const backgroundErrors: string[] = []
    mill.events.on('worker.error', ({ during }) => void backgroundErrors.push(during))
    const numbers = Array.from({ length: 2_000 }, (_, n) => n)
    for (let from = 0; from < numbers.length; from += 250)
      await writer.enqueueMany(job, numbers.slice(from, from + 250))
    await mill.work([job], { concurrency: 10 })
    await eventually(() => ran.size > 100, 'the first jobs')
    await begin(server)
    // The time itself is what is tried.
    await pass(AWAY_MS)
    await end(server)
    await eventually(() => numbers.every((n) => ran.has(n)), 'every job', 120_000)
    await eventually(async () => (await mill.counts()).outage?.completed === 2_000, 'the commits')
    // The broker may have dropped us when it woke up. Then what was not committed is repeated: some 500 in the second in
    // which it was not missed yet, and not the 1900 that there was time for before the session was over.
    const repeated = [...ran.values()].filter((times) => times > 1).length
    assert.ok(repeated <= 1_000, `${repeated} jobs ran twice`)
    assert.ok(backgroundErrors.length > 0, 'nobody was told that the broker was away')
  })
}

test('a handler that blocks its event loop past the session loses its partition, and its late settle is refused', async (t) => {
  const server = await kafkaServer()
  const group = freshName('group')
  const topic = await freshTopic(server, 'blocked')
  await produce(server, [{ topic, value: '1' }])
  const blocked = startHolder(briefUrlOf(server, group), topic)
  t.after(() => blocked.end())
  await blocked.heard('ready')
  const engine = await openEngine(urlOf(server, group))
  t.after(() => engine.close())
  const consumer = await consume(engine, topic)
  blocked.tell('claim')
  const { ids } = await blocked.heard('claimed')
  assert.deepEqual(ids, [`${topic}:0:0`])
  blocked.tell(`block ${SESSION_MS * 3}`)
  blocked.tell('settle')
  const [again] = await claimed(consumer, 1)
  assert.equal(again?.job.id, `${topic}:0:0`)
  if (again === undefined) return
  assert.deepEqual(await consumer.settle([{ lease: again, outcome: complete }]), [])
  assert.deepEqual((await blocked.heard('settled')).lost, ['revoked'])
  await eventually(async () => (await groupOffsets(server, group))[0]?.offset === 1n, 'the commit of the successor')
})

for (const does of ['closes every connection', 'answers nothing'] as const) {
  test(`a broker that ${does} does not keep a worker from the others that the URL names`, async (t) => {
    const server = await kafkaServer()
    const topic = await freshTopic(server, 'beside')
    const sockets = new Set<Socket>()
    const broken = createServer((socket) => {
      socket.on('error', () => {})
      if (does === 'closes every connection') socket.destroy()
      else sockets.add(socket)
    }).listen(0, '127.0.0.1')
    await once(broken, 'listening')
    t.after(() => {
      for (const socket of sockets) socket.destroy()
      broken.close()
    })
    const address = broken.address()
    const port = typeof address === 'object' && address !== null ? address.port : 0
    const several = server.url.replace(server.address, `127.0.0.1:${port},${server.address}`)
    const engine = await openEngine(urlOf({ ...server, url: several }, freshName('group')))
    t.after(() => engine.close())
    const consumer = await consume(engine, topic)
    await engine.enqueue([newJob({ type: topic })])
    assert.equal((await claimed(consumer, 1)).length, 1)
  })
}
