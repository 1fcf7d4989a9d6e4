import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { claimAll } from '../../../test/fixtures/claim.ts'
import { newJob } from '../../../test/fixtures/new-job.ts'
import {
  endOffsets,
  freshName,
  freshTopic,
  groupOffsets,
  type KafkaServer,
  kafkaServer,
} from '../../../test/servers/kafka.ts'
import type { Consumer } from '../../engine/engine.ts'
import type { Lease, Outcome } from '../../engine/outcome.ts'
import { systemClock } from '../../time/clock.ts'
import { KafkaEngine } from './engine.ts'
import { parseUrl } from './options.ts'

const never = new AbortController().signal
const complete: Outcome = { kind: 'complete', result: 'null', durationMs: 1 }
const error = { name: 'Error', code: null, message: 'boom', stack: null }
/** It must not be over before the counts are read, also on a machine that stands still for a while. */
const RETRY_MS = 4_000
const retry = (delayMs: number): Outcome => ({ kind: 'retry', delayMs, error })

let server: KafkaServer
const engines: KafkaEngine[] = []

before(async () => {
  server = await kafkaServer()
})

after(async () => {
  for (const engine of engines) await engine.close()
})

async function openEngine(parameters = '', group = freshName('group')): Promise<KafkaEngine> {
  const options = parseUrl(`${server.url}?group=${group}&session=60000&heartbeat=200&drain=2000${parameters}`)
  const engine = await KafkaEngine.connect(options, { clock: systemClock, migrate: true })
  engines.push(engine)
  return engine
}

function consume(engine: KafkaEngine, type: string, worker = 'test:1:1'): Promise<Consumer> {
  return engine.consume({ types: [{ type, leaseMs: 600_000 }], worker })
}

async function settleAll(consumer: Consumer, leases: readonly Lease[], outcome: Outcome = complete): Promise<void> {
  assert.deepEqual(await consumer.settle(leases.map((lease) => ({ lease, outcome }))), [])
}

test('jobs are claimed in the order of their key, one at a time, and committed when settled', async () => {
  const group = freshName('group')
  const engine = await openEngine('', group)
  const type = await freshTopic(server, 'order', 2)
  const jobs = Array.from({ length: 6 }, (_, n) => newJob({ type, key: n % 2 === 0 ? 'a' : 'b', payload: String(n) }))
  await engine.enqueue(jobs)
  const consumer = await consume(engine, type)
  const seen: string[] = []
  for (let turn = 0; turn < 3; turn += 1) {
    const leases: readonly Lease[] = await claimAll(consumer, 2)
    assert.deepEqual(new Set(leases.map(({ job }) => job.key)), new Set(['a', 'b']))
    assert.deepEqual(await consumer.claim({ max: 5, waitMs: 0, signal: never }), [])
    seen.push(...leases.map(({ job }) => job.payload).sort())
    await settleAll(consumer, leases)
  }
  assert.deepEqual(seen, ['0', '1', '2', '3', '4', '5'])
  assert.deepEqual((await engine.counts())[type], { ready: 0, delayed: 0, inProgress: 0, completed: 6, dead: 0 })
  await engine.close()
  const committed = (await groupOffsets(server, group)).map(({ offset }) => offset)
  assert.deepEqual(committed, await endOffsets(server, type))
})

test('what was settled is refused a second time', async () => {
  const engine = await openEngine()
  const type = await freshTopic(server, 'twice')
  await engine.enqueue([newJob({ type })])
  const consumer = await consume(engine, type)
  const [lease] = await claimAll(consumer, 1)
  assert.ok(lease)
  assert.deepEqual(await consumer.settle([{ lease, outcome: complete }]), [])
  const lost = await consumer.settle([{ lease, outcome: complete }])
  assert.equal(lost.length, 1)
  assert.equal((await engine.counts())[type]?.completed, 1)
})

test('a retry is kept back for its delay, with its key and nobody else', async () => {
  const engine = await openEngine()
  const type = await freshTopic(server, 'retry')
  await engine.enqueue(['a', 'a', 'b'].map((key, n) => newJob({ type, key, payload: String(n) })))
  const consumer = await consume(engine, type)
  const leases = await claimAll(consumer, 2)
  const first = leases.find(({ job }) => job.payload === '0')
  const other = leases.find(({ job }) => job.payload === '2')
  assert.ok(first && other)
  const atMs = Date.now()
  await consumer.settle([
    { lease: first, outcome: retry(RETRY_MS) },
    { lease: other, outcome: complete },
  ])
  assert.deepEqual((await engine.counts())[type], { ready: 1, delayed: 1, inProgress: 0, completed: 1, dead: 0 })
  const [again]: readonly Lease[] = await claimAll(consumer, 1)
  assert.ok(again)
  assert.ok(Date.now() - atMs >= RETRY_MS)
  assert.deepEqual([again.job.payload, again.attempt], ['0', 2])
})

test('jobs without a key are spread over the partitions, and a key goes where the Java client sends it', async () => {
  const engine = await openEngine()
  const type = await freshTopic(server, 'spread', 3)
  await engine.enqueue(Array.from({ length: 9 }, () => newJob({ type })))
  assert.deepEqual(await endOffsets(server, type), [3n, 3n, 3n])
  // murmur2('21') is negative as a 32-bit number: -973932308 in Kafka's own test vectors, 1173551340 without its sign.
  await engine.enqueue([newJob({ type, key: '21' })])
  const expected = [3n, 3n, 3n]
  expected[(-973_932_308 & 0x7fffffff) % 3] = 4n
  assert.deepEqual(await endOffsets(server, type), expected)
})
