/** The doctor on a real broker. */
import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import type { Finding } from '../../src/engine/engine.ts'
import { newJob } from '../fixtures/new-job.ts'
import {
  createTopic,
  endOffsets,
  freshName,
  freshTopic,
  groupOffsets,
  type KafkaServer,
  kafkaServer,
  withAdmin,
} from '../servers/kafka.ts'
import { claimed, complete, consume, eventually, openEngine, produce, urlOf } from './kafka-fixtures.ts'

let server: KafkaServer
before(async () => {
  server = await kafkaServer()
})

/** The tests' broker is one node, so each record has one copy. */
const withoutCopies = (findings: readonly Finding[]): readonly Finding[] =>
  findings.filter(({ subject }) => subject !== 'replication')

const about = (findings: readonly Finding[], subject: string): string =>
  findings
    .filter((finding) => finding.subject === subject)
    .map(({ severity, detail }) => `${severity}: ${detail}`)
    .join('\n')

test('nothing is wrong with a topic that a worker reads, and looking changes nothing', async (t) => {
  const group = freshName('group')
  const topic = await freshTopic(server, 'sound')
  const engine = await openEngine(urlOf(server, group))
  t.after(() => engine.close())
  const consumer = await consume(engine, topic)
  await engine.enqueue([newJob({ type: topic }), newJob({ type: topic })])
  const [lease] = await claimed(consumer, 1)
  assert.ok(lease)
  await consumer.settle([{ lease, outcome: complete }])
  await engine.counts()
  const findings = await engine.diagnose({ deep: true })
  assert.deepEqual(
    withoutCopies(findings).filter(({ severity }) => severity !== 'ok'),
    [],
  )
  assert.match(about(findings, 'group'), /has 1 member on 127\.0\.0\.1 and 1 partition/)
  assert.match(about(findings, 'lag'), /1 record behind over 1 topic/)
  assert.match(about(findings, 'broker version'), /Kafka 4\.1 or newer/)
  assert.match(about(findings, 'replication'), /^warning: .*one copy/)
  assert.deepEqual([await endOffsets(server, topic), (await groupOffsets(server, group))[0]?.offset], [[2n], 1n])
  assert.equal((await withAdmin(server, (admin) => admin.listTopics())).includes(`${topic}.dlq`), false)
})

test('lag, a topic that nobody reads, letters that a broker would delete and clocks that are ahead are found', async (t) => {
  const group = freshName('group')
  const topic = await freshTopic(server, 'wrong', 2)
  await createTopic(server, `${topic}.dlq`, 1, { 'retention.ms': '604800000' })
  const engine = await openEngine(urlOf(server, group))
  t.after(() => engine.close())
  await engine.enqueue(Array.from({ length: 12 }, () => newJob({ type: topic })))
  await produce(server, [{ topic, value: '1', timestampMs: Date.now() + 600_000 }])
  const findings = await engine.diagnose({ lag: { [topic]: { warning: 5, critical: 12 } }, handlerMs: 60_000 })
  assert.match(about(findings, 'lag'), /^error: .*13 records behind.*more than 12$/)
  assert.match(about(findings, 'workers'), /^warning: .*13 waiting records/)
  assert.match(about(findings, 'dead letters'), /^error: .*after 7 d/)
  assert.match(about(findings, 'handlers'), /^warning: .*12 s when its partition moves.*up to 1 min/)
  assert.match(about(findings, 'clock'), /^warning: .* by (9|10) min/)
  assert.match(about(findings, 'overdue jobs'), /^ok/)
})

test('records that are old, and records that were deleted before they were settled, are found', async (t) => {
  const group = freshName('group')
  const topic = await freshTopic(server, 'old')
  const engine = await openEngine(urlOf(server, group))
  t.after(() => engine.close())
  const old = { topic, value: '1', timestampMs: Date.now() - 2 * 3_600_000 }
  await produce(server, [old, old, old, { topic, value: '1' }])
  const consumer = await consume(engine, topic)
  await eventually(async () => (await groupOffsets(server, group)).length === 1, 'the first commit')
  await consumer.close()
  assert.match(about(await engine.diagnose(), 'overdue jobs'), /^warning: 3 jobs .*60 min/)
  await withAdmin(server, (admin) =>
    admin.deleteRecords({ topics: [{ name: topic, partitions: [{ partition: 0, offset: 2n }] }] }),
  )
  const findings = await engine.diagnose()
  assert.match(about(findings, 'lost jobs'), /^error: 2 records .* deleted before/)
  assert.match(about(findings, 'overdue jobs'), /^warning: 1 job /)
})
