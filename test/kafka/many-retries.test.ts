/** A partition with more records in retry than it takes on at a time, on a real broker. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { open } from '../../src/client/mill.ts'
import type { Outcome } from '../../src/engine/outcome.ts'
import { RETRIES_MAX } from '../../src/engines/kafka/watermark.ts'
import { defineJob } from '../../src/job/definition.ts'
import { freshName, freshTopic, kafkaServer } from '../servers/kafka.ts'
import { boom, claimed, complete, consume, eventually, openEngine, produce, urlOf } from './kafka-fixtures.ts'

const server = await kafkaServer()
const MANY = RETRIES_MAX + 10
const again: Outcome = { kind: 'retry', delayMs: 0, error: boom }

test('records in retry go on at a member that joins and at the one that stays', async (t) => {
  const [group, topic] = [freshName('group'), await freshTopic(server, 'moving', 2)]
  await produce(
    server,
    Array.from({ length: MANY * 2 }, (_, n) => ({ topic, partition: n % 2, value: String(n) })),
  )
  const engines = [await openEngine(urlOf(server, group)), await openEngine(urlOf(server, group))] as const
  t.after(() => Promise.all(engines.map((engine) => engine.close())))
  const stays = await consume(engines[0], topic)
  const failed = await claimed(stays, MANY * 2)
  assert.deepEqual(await stays.settle(failed.map((lease) => ({ lease, outcome: again }))), [])
  const joins = await consume(engines[1], topic)
  const done = new Map<string, string[]>()
  await eventually(async () => {
    for (const consumer of [stays, joins]) {
      const leases = await claimed(consumer, 20, 1)
      const lost = await consumer.settle(leases.map((lease) => ({ lease, outcome: complete })))
      const kept = leases.filter(({ token }) => !lost.some(({ lease }) => lease.token === token))
      for (const { job, token } of kept) done.set(job.payload, [...(done.get(job.payload) ?? []), token])
    }
    return done.size === MANY * 2
  }, 'every record')
  assert.deepEqual(
    [...done.values()].filter((tokens) => tokens.length > 1),
    [],
  )
})

test('records of a newer payload version wait for the worker that knows it, and run there', async (t) => {
  const [group, topic] = [freshName('group'), await freshTopic(server, 'newer')]
  const url = urlOf(server, group)
  const [old, fresh] = [await open(url), await open(url)]
  t.after(() => Promise.all([old.close(), fresh.close()]))
  const ran = new Set<unknown>()
  const given = { back: 0, told: '' }
  const definition = { type: topic, upcast: (payload: unknown) => payload }
  const newer = defineJob({ ...definition, version: 2, run: ({ payload }) => void ran.add(payload) })
  old.events.on('job.settled', () => {
    given.back += 1
  })
  old.events.on('worker.error', ({ error }) => {
    if (error instanceof Error && error.message.includes('retry')) given.told = error.message
  })
  await old.work([defineJob({ type: topic, run: () => assert.fail('it knows no version 2') })], { concurrency: 20 })
  await fresh.enqueueMany(
    newer,
    Array.from({ length: MANY }, (_, n) => n),
  )
  await eventually(() => given.back >= RETRIES_MAX, 'as many given back as a partition takes on')
  await eventually(() => given.told !== '', 'the word that the partition is read no further')
  assert.match(given.told, new RegExp(`^${RETRIES_MAX} or more records of ${topic}/0 wait for a retry`))
  const doctor = await openEngine(url)
  t.after(() => doctor.close())
  await eventually(async () => {
    const found = (await doctor.diagnose()).find(({ subject }) => subject === 'retries')
    return found?.severity === 'warning' && found.detail.includes(`records of ${topic}/0 wait for a retry`)
  }, 'the finding of the doctor')
  await fresh.work([newer], { concurrency: 20 })
  await old.close()
  await eventually(() => ran.size === MANY, 'all of them')
})
