/** A topic with one busy partition beside idle ones, on a real broker. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { open } from '../../src/client/mill.ts'
import { defineJob } from '../../src/job/definition.ts'
import { freshName, freshTopic, kafkaServer } from '../servers/kafka.ts'
import { eventually, produce, urlOf } from './kafka-fixtures.ts'

const server = await kafkaServer()
const RECORDS = 4_000
const VALUE = JSON.stringify('x'.repeat(10_000))
/** Forty fetches; each would wait for half a second behind one that asks for what is not there. */
const STALLED_MS = 10_000

test('a fetch that waits for idle partitions does not keep a busy one hungry', { timeout: 180_000 }, async (t) => {
  const topic = await freshTopic(server, 'skewed', 6)
  for (let from = 0; from < RECORDS; from += 80)
    await produce(server, Array(80).fill({ topic, partition: 0, value: VALUE }))
  const mill = await open(urlOf(server, freshName('group')))
  t.after(() => mill.close())
  const atMs: number[] = []
  await mill.work([defineJob({ type: topic, run: () => void atMs.push(performance.now()) })], { concurrency: 5 })
  await eventually(() => atMs.length === RECORDS, 'the last record', 120_000)
  const tookMs = Math.round((atMs.at(-1) ?? 0) - (atMs[0] ?? 0))
  t.diagnostic(`${RECORDS} records of one partition in ${tookMs} ms`)
  assert.ok(tookMs < STALLED_MS, `${tookMs} ms for ${RECORDS} records`)
})
