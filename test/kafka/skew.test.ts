/** A topic with one busy partition beside idle ones, on a real broker. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { open } from '../../src/client/mill.ts'
import { defineJob } from '../../src/job/definition.ts'
import { freshName, freshTopic, kafkaServer } from '../servers/kafka.ts'
import { eventually, produce, urlOf } from './kafka-fixtures.ts'

const server = await kafkaServer()
const RECORDS = 4_000
const VALUE = JSON.stringify('x'.repeat(10_000))
/** Forty fetches, each of which would wait for half a second behind one that asks for what is not there: 20 s in all. */
const STALLED_MS = 10_000

/** How long the records of one partition take, from the first to the last. */
async function workedOff(t: TestContext, partitions: number): Promise<number> {
  const topic = await freshTopic(server, 'skewed', partitions)
  for (let from = 0; from < RECORDS; from += 80)
    await produce(server, Array(80).fill({ topic, partition: 0, value: VALUE }))
  const mill = await open(urlOf(server, freshName('group')))
  const atMs: number[] = []
  await mill.work([defineJob({ type: topic, run: () => void atMs.push(performance.now()) })], { concurrency: 5 })
  await eventually(() => atMs.length === RECORDS, 'the last record', 240_000)
  await mill.close()
  const tookMs = Math.round((atMs.at(-1) ?? 0) - (atMs[0] ?? 0))
  t.diagnostic(`${RECORDS} records of one partition of ${partitions} in ${tookMs} ms`)
  return tookMs
}

test('a fetch that waits for idle partitions does not keep a busy one hungry', { timeout: 600_000 }, async (t) => {
  // What the machine takes without idle partitions, just before.
  const aloneMs = await workedOff(t, 1)
  const besideIdleMs = await workedOff(t, 6)
  assert.ok(besideIdleMs < aloneMs + STALLED_MS, `${besideIdleMs} ms, and ${aloneMs} ms without idle partitions`)
})
