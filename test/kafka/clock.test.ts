/** A worker on Kafka whose machine's clock is set. */
import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { KafkaEngine } from '../../src/engines/kafka/engine.ts'
import { parseUrl } from '../../src/engines/kafka/options.ts'
import { type Clock, systemClock } from '../../src/time/clock.ts'
import { freshName, freshTopic, type KafkaServer, kafkaServer } from '../servers/kafka.ts'
import { claimed, complete, consume, never, produce, urlOf } from './kafka-fixtures.ts'

let server: KafkaServer
before(async () => {
  server = await kafkaServer()
})

const HOUR_MS = 3_600_000

test('a clock that is set takes no record from its holder, and a claim waits no longer for it', async (t) => {
  let offsetMs = 0
  const clock: Clock = { ...systemClock, nowMs: () => systemClock.nowMs() + offsetMs }
  const topic = await freshTopic(server, 'clock')
  const engine = await KafkaEngine.connect(parseUrl(urlOf(server, freshName('group'))), { clock, migrate: true })
  t.after(() => engine.close())
  const consumer = await consume(engine, topic)
  await produce(server, [
    { topic, key: 'one', value: '1' },
    { topic, key: 'two', value: '2' },
  ])
  const [one, two] = await claimed(consumer, 2)
  assert.ok(one && two)
  offsetMs = HOUR_MS
  assert.deepEqual(
    await consumer.claim({ max: 2, waitMs: 0, signal: never }),
    [],
    'a record that is held was handed out',
  )
  assert.deepEqual(await consumer.renew([two], 600_000), [])
  assert.deepEqual(await consumer.settle([{ lease: one, outcome: complete }]), [])
  const waiting = consumer.claim({ max: 1, waitMs: 2_000, signal: never })
  offsetMs = -HOUR_MS
  assert.deepEqual(await waiting, [])
  assert.deepEqual(await consumer.settle([{ lease: two, outcome: complete }]), [])
})
