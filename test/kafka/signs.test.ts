/** What operators see of Kafka: health without workers, a broker that is away, and errors in words of ours. */
import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { openDesk } from '../../src/desk/desk.ts'
import type { KafkaEngine } from '../../src/engines/kafka/engine.ts'
import { defineJob, open } from '../../src/index.ts'
import { checkHealth, workersOf } from '../../src/observe/health.ts'
import { dlqRoutes, openTopicDesk } from '../../workloads/escrow/index.ts'
import { stageOn } from '../fixtures/admin.ts'
import { freshName, freshTopic, type KafkaServer, kafkaServer, startKafka } from '../servers/kafka.ts'
import { eventually, openEngine, produce, urlOf } from './kafka-fixtures.ts'

let server: KafkaServer
before(async () => {
  server = await kafkaServer()
})

test('health without a worker says how many records wait, and is well when one runs, which is listed', async (t) => {
  const topic = await freshTopic(server)
  await produce(
    server,
    Array.from({ length: 3_000 }, (_, n) => ({ topic, value: String(n) })),
  )
  const url = urlOf(server, freshName('group'), `&prefix=${topic.slice(0, -1)}`)
  const type = topic.slice(-1)
  const { raw, ask, mill } = await stageOn(t, url)
  const health = async (): Promise<Awaited<ReturnType<typeof checkHealth>>> => {
    const answer = await raw('/health')
    assert.equal(answer.status, 503)
    return JSON.parse(await answer.text())
  }
  const expected = ['no worker runs', `3000 jobs of '${type}' wait and no worker runs this type`]
  // On a busy machine a check may take longer than its second, which is a reason of its own.
  await eventually(async () => {
    const { status, reasons } = await health()
    assert.equal(status, 'unhealthy')
    return expected.every((text) => reasons.some((reason) => reason.text === text))
  }, expected.join(' and '))
  const worker = await mill.work([defineJob({ type, run: async () => {} })])
  await eventually(async () => (await raw('/health')).status === 200, 'health with a worker')
  await eventually(async () => {
    const { details, reasons } = await checkHealth(mill, workersOf(mill.engine))
    return details.activeWorkers === 1 && reasons.every(({ text }) => text !== 'no worker runs')
  }, 'one worker')
  const [shown] = await mill.workers()
  assert.deepEqual(
    [shown?.condition, shown?.concurrency, shown?.types.map((one) => one.type)],
    ['running', null, [type]],
  )
  const { workers } = await ask('listWorkers', {})
  assert.deepEqual([workers.length, workers[0]?.text], [1, 'what it does is not known here'])
  const { queues } = await ask('listQueues', {})
  assert.equal(queues.find((queue) => queue.type === type)?.workers, 1)
  await worker.stop()
  await eventually(async () => (await raw('/health')).status === 503, 'health without it')
})

/** What is called beside HTTP, such as by the command line. */
async function callAll(engine: KafkaEngine): Promise<void> {
  const calls: Readonly<Record<string, () => Promise<unknown>>> = {
    ping: () => engine.ping(),
    counts: () => engine.counts(),
    workers: () => engine.workers(),
    letters: () => openDesk({ engine }).list({}),
    topics: () => engine.ensureTopics(['some']),
    consume: () => engine.consume({ types: [{ type: 'some', leaseMs: 1_000 }], worker: 'one' }),
  }
  const expected = { code: /^ERR_STORAGE_/, message: /no broker answers|not answered within|closed the connection/ }
  await Promise.all(Object.entries(calls).map(([name, call]) => assert.rejects(call(), expected, name)))
}

test('with a broker that hangs or is gone, every route answers 503 within two seconds, in words of ours', async (t) => {
  const broker = await startKafka()
  t.after(() => broker.end())
  // What waits for the broker itself waits for longer than any route below.
  const url = urlOf(broker, freshName('group'), '&timeout=12000')
  const operator = await openTopicDesk(url)
  t.after(() => operator.close())
  const { raw, lines } = await stageOn(t, url, {
    topics: operator.watched(() => ({ warning: 1, critical: 2 })),
    routes: dlqRoutes(operator),
  })
  const engine = await openEngine(url)
  t.after(() => engine.close())
  const json = { 'content-type': 'application/json' }
  const ask = async (path: string, init: RequestInit = {}): Promise<void> => {
    const startedMs = performance.now()
    const answer = await raw(path, init)
    const text = await answer.text()
    const tookMs = performance.now() - startedMs
    assert.equal(answer.status, 503, `${path}: ${text}`)
    // Two seconds, and what a busy machine adds.
    assert.ok(tookMs < 9_000, `${path} took ${tookMs} ms`)
    assert.doesNotMatch(text, /PLT_KFK|executing API|failed \d times/, path)
  }
  const askAll = (): Promise<unknown> =>
    Promise.all([
      ask('/api/v1/queues'),
      ask('/api/v1/dead-letters'),
      ask('/api/v1/audit'),
      ask('/api/v1/topics'),
      ask('/health'),
      ask('/health/ready'),
      ask('/internal/v1/dlq/some.dlq'),
      ask('/api/v1/jobs', { method: 'POST', headers: json, body: JSON.stringify({ type: 'bill', payload: { n: 1 } }) }),
    ])
  await broker.freeze()
  await askAll()
  await assert.rejects(open(url), {
    code: 'ERR_STORAGE_OPEN',
    message: /not answered within \d+ ms; is the broker there/,
  })
  await broker.thaw()
  await broker.stop()
  await Promise.all([askAll(), callAll(engine)])
  assert.deepEqual(
    lines.filter(({ level }) => level === 'error').map(({ text }) => text),
    [],
  )
})
