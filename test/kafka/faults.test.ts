/** What the engine does when brokers go away and topics change. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { open } from '../../src/client/mill.ts'
import { loadClient } from '../../src/engines/kafka/driver.ts'
import { GroupMember } from '../../src/engines/kafka/member.ts'
import { parseUrl } from '../../src/engines/kafka/options.ts'
import type { Membership } from '../../src/engines/kafka/owned-partition.ts'
import { nameOf, type PartitionName } from '../../src/engines/kafka/record.ts'
import { defineJob } from '../../src/job/definition.ts'
import { systemClock } from '../../src/time/clock.ts'
import { createTopic, freshName, freshTopic, kafkaServer, startKafka, withAdmin } from '../servers/kafka.ts'
import { claimed, consume, eventually, openEngine, produce, urlOf } from './kafka-fixtures.ts'

test('partitions that are added while running are found and become ours', async (t) => {
  const server = await kafkaServer()
  const topic = await freshTopic(server, 'growing', 2)
  const owned = new Map<string, PartitionName>()
  const epochs: Membership[] = []
  const member = new GroupMember({
    client: await loadClient(),
    options: parseUrl(urlOf(server, freshName('group'))),
    clock: systemClock,
    worker: 'w',
    topics: [topic],
    existing: () => withAdmin(server, (admin) => admin.listTopics()),
    onAssigned: (fresh, membership) => {
      for (const partition of fresh) owned.set(nameOf(partition), partition)
      epochs.push(membership)
    },
    onRevoking: async () => {},
    onLost: (partitions) => {
      for (const partition of partitions) owned.delete(nameOf(partition))
    },
    commit: async () => {},
    onSure: () => {},
    onTopics: () => {},
    onError: () => {},
  })
  t.after(() => member.close())
  await member.join()
  await eventually(() => owned.size === 2, 'the first partitions')
  await member.checkTopology()
  assert.equal(epochs.length, 1, 'it joined again although nothing had changed')
  await withAdmin(server, (admin) => admin.createPartitions({ topics: [{ name: topic, count: 4 }] }))
  await eventually(async () => {
    await member.checkTopology()
    return owned.size === 4
  }, 'the new partitions')
})

test('a topic that is deleted keeps back no other of its worker, and is read again when it is back', async (t) => {
  const server = await kafkaServer()
  const [gone, stays] = [await freshTopic(server, 'gone'), await freshTopic(server, 'stays')]
  const group = freshName('group')
  // Who creates its topics itself; otherwise the worker would.
  const url = urlOf(server, group, '&partitions=0')
  const [one, two] = [await openEngine(url), await openEngine(url)]
  t.after(() => Promise.all([one.close(), two.close()]))
  const types = [gone, stays].map((type) => ({ type, leaseMs: 60_000 }))
  const consumer = await one.consume({ types, worker: 'payout-executor-1' })
  const backgroundErrors: string[] = []
  consumer.listen({ onTrouble: (error) => void backgroundErrors.push(String(error)) })
  await withAdmin(server, (admin) => admin.deleteTopics({ topics: [gone] }))
  await eventually(
    () => backgroundErrors.some((text) => text.includes(`${gone} was deleted`)),
    'the word about it',
    60_000,
  )
  await produce(server, [{ topic: stays, value: '1' }])
  const [first] = await claimed(consumer, 1)
  assert.equal(first?.job.type, stays)
  // A rebalance without the topic, and one with it.
  const second = await consume(two, stays)
  await createTopic(server, gone)
  await produce(server, [
    { topic: gone, value: '2' },
    { topic: stays, value: '3' },
  ])
  const payloads = new Set<string>()
  await eventually(async () => {
    const claims = await Promise.all([consumer, second].map((one) => claimed(one, 1, 500)))
    for (const { job } of claims.flat()) payloads.add(job.payload)
    return payloads.has('2') && payloads.has('3')
  }, 'the records of both topics')
})

test('a broker that dies and comes back loses nothing that it had acknowledged, and the worker goes on', async (t) => {
  const server = await startKafka()
  t.after(() => server.end())
  const mill = await open(`${urlOf(server, freshName('group'))}&timeout=4000&partitions=3`)
  t.after(() => mill.close())
  const ran = new Set<number>()
  const counting = defineJob({
    type: 'counting',
    backoff: { kind: 'fixed', delay: 10 },
    lease: '2s',
    run: ({ payload }) => void ran.add(Number(payload)),
  })
  await mill.work([counting], { concurrency: 20 })
  const acknowledged: number[] = []
  const enqueue = async (from: number, count: number): Promise<void> => {
    const numbers = Array.from({ length: count }, (_, index) => from + index)
    await mill.enqueueMany(counting, numbers)
    acknowledged.push(...numbers)
  }
  await enqueue(0, 500)
  await eventually(() => ran.size > 50, 'the first jobs')
  await server.kill()
  const startedMs = Date.now()
  await assert.rejects(enqueue(10_000, 1), (error) => error instanceof Error && 'code' in error)
  assert.ok(Date.now() - startedMs < 15_000, 'waited too long for an unreachable broker')
  await server.start()
  await eventually(
    () =>
      enqueue(1_000, 100).then(
        () => true,
        () => false,
      ),
    'an enqueue after the outage',
  )
  await eventually(() => acknowledged.every((n) => ran.has(n)), 'every acknowledged job')
  await eventually(async () => (await mill.counts()).counting?.ready === 0, 'an empty queue')
})
