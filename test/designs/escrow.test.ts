/** Design D as its author would try it: one command on a real broker and a real Redis, and D's own names for everything. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Redis } from 'ioredis'
import { z } from 'zod'
import { ESCROW_WORKERS } from '../../workloads/escrow/index.ts'
import { jsonLines, millrace, startMillrace, until } from '../cli/run.ts'
import { parseExposition, sampleValue } from '../fixtures/exposition.ts'
import { produce } from '../kafka/kafka-fixtures.ts'
import { createTopic, startKafka } from '../servers/kafka.ts'
import { startRedis } from '../servers/redis.ts'

const LIMIT_MS = 180_000
const DAY_MS = 86_400_000
const WORKERS = ESCROW_WORKERS.map(({ worker }) => worker)
const urlIn = (output: string): string => /"url":"([^"]+)"/.exec(output)?.[1] ?? assert.fail('it says no address')
const keyOf = (worker: string, instance: number): string => `worker:${worker}:${worker}-${instance}`

const Heartbeat = z.object({
  timestamp: z.iso.datetime(),
  status: z.string(),
  last_message_at: z.iso.datetime().nullable(),
  consumer_lag: z.number().nullable(),
})
const Alerts = z.object({
  alerts: z.array(
    z.object({
      rule: z.string(),
      severity: z.string(),
      status: z.string(),
      labels: z.record(z.string(), z.string()),
    }),
  ),
})
const Component = z.object({ status: z.string(), details: z.record(z.string(), z.unknown()) })
const Actuator = z.object({
  components: z.object({ kafka: Component, consumerLag: Component, workerHeartbeats: Component, dlq: Component }),
})
const Envelope = z.object({
  dlq_partition: z.number(),
  dlq_offset: z.number(),
  original_topic: z.string(),
  retry_count: z.number(),
  worker_instance: z.string(),
})
const Letters = z.object({ letters: z.array(Envelope) })
const Done = z.object({ done: z.boolean() })
const Replayed = z.object({ replayed: z.number() })
const Page = z.object({
  items: z.array(z.object({ job: z.object({ id: z.string() }), error: z.object({ message: z.string() }) })),
})
const Audit = z.object({ items: z.array(z.object({ action: z.string(), type: z.string() })) })

test('start --preset escrow --presence: heartbeats, metrics, alerts, endpoints and health are those of design D', async (t) => {
  const [kafka, redisServer] = await Promise.all([startKafka(), startRedis()])
  const redis = new Redis(redisServer.url)
  const heartbeat = async (key: string) => Heartbeat.parse(JSON.parse((await redis.get(key)) ?? 'null'))
  const said: string[][] = []
  const monitor = await redis.monitor()
  t.after(async () => {
    monitor.disconnect()
    redis.disconnect()
    await Promise.all([kafka.end(), redisServer.end()])
  })
  monitor.on('monitor', (_time: string, args: string[]) => void said.push(args))
  // Letters of a month ago: the one without money is archived, the other stays.
  for (const topic of ['delivery.commands.dlq', 'escrow.commands.dlq']) {
    await createTopic(kafka, topic, 1, { 'retention.ms': '-1' })
    await produce(kafka, [{ topic, key: 'old', value: '{}', timestampMs: Date.now() - 31 * DAY_MS }])
  }

  const stores = ['--engine', `${kafka.url}?session=4000&heartbeat=500`, '--presence', redisServer.url]
  const main = startMillrace(t, ['start', '--preset', 'escrow', ...stores, '--port', '0', '--json'])
  await main.said('To try it')
  const page = urlIn(main.output)
  const ask = async (path: string, init: RequestInit = {}): Promise<unknown> =>
    (await fetch(new URL(path, page), init)).json()
  const scrape = async (url = page): Promise<string> => (await fetch(new URL('/metrics', url))).text()
  const firing = async (url: string): Promise<readonly string[]> =>
    Alerts.parse(await (await fetch(new URL('/api/v1/alerts', url))).json())
      .alerts.filter(({ status }) => status === 'firing')
      .map(({ rule, severity, labels: { topic, worker_instance: instance } }) =>
        [rule, severity, topic ?? instance].join(' '),
      )
  const command = async (...args: string[]): Promise<string> => {
    const { code, out, err } = await millrace([...args, ...stores, '--json'])
    assert.equal(code, 0, err)
    return out
  }
  const send = (topic: string, payload: object, attempts: number): Promise<string> =>
    command('enqueue', topic, JSON.stringify(payload), '--key', 'deal_1', '--attempts', String(attempts))

  // D02 D03 D04 D05
  await t.test('each worker has its key, its four fields and 30 s', async () => {
    for (const worker of WORKERS) {
      const beat = await heartbeat(keyOf(worker, 1))
      assert.equal(beat.status, 'RUNNING')
      assert.ok(Math.abs(Date.now() - Date.parse(beat.timestamp)) < 30_000)
      const ttl = await redis.pttl(keyOf(worker, 1))
      assert.ok(ttl > 0 && ttl <= 30_000, `${ttl} ms`)
    }
    const listed = jsonLines(await command('workers')).map(({ id }) => id)
    assert.deepEqual(listed.toSorted(), WORKERS.map((worker) => `${worker}-1`).toSorted())
  })

  await t.test('health counts all seven', async () => {
    const Details = z.object({ details: z.object({ activeWorkers: z.number() }) })
    assert.equal(Details.parse(await ask('/health')).details.activeWorkers, WORKERS.length)
    const { out } = await millrace(['health', ...stores, '--json'])
    assert.equal(Details.parse(JSON.parse(out)).details.activeWorkers, WORKERS.length)
  })

  // D54 D55
  await t.test('dead letters of a month ago are archived, those about money are not', async () => {
    await until(() => main.output.includes('Dead letters were archived'), LIMIT_MS)
    const archived = jsonLines(main.output).filter(({ msg }) => msg === 'Dead letters were archived')
    assert.deepEqual(
      archived.map(({ topic, count }) => [topic, count]),
      [['delivery.commands.dlq', 1]],
    )
  })

  const side = startMillrace(t, ['serve', '--preset', 'escrow', ...stores, '--port', '0', '--json'])
  await t.test('workers of another process are lost, one hangs, a group falls behind, and jobs fail', async () => {
    const own = ['--instance', '2', '--metrics-port', '0']
    const other = startMillrace(t, ['work', '--preset', 'escrow', ...own, ...stores, '--json'])
    await other.said('To try it')
    for (const worker of WORKERS) assert.equal(await redis.exists(keyOf(worker, 2)), 1, worker)
    const figures = await scrape(urlIn(other.output))
    const labels = { worker: 'payout-executor', worker_instance: 'payout-executor-2' }
    assert.equal(sampleValue(figures, 'worker_dlq_messages_total', { topic: 'escrow.commands.dlq', ...labels }), 0)
    other.child.kill('SIGKILL')
    await other.ended
    // What a minute does: their keys expire, and nothing has been heard since.
    for (const worker of WORKERS) {
      await redis.del(keyOf(worker, 2))
      await redis.zadd('millrace:workers', Date.now() - 61_000, keyOf(worker, 2))
    }
    // A program without Millrace, which lives and has handled nothing for six minutes.
    const at = (ago: number): string => new Date(Date.now() - ago).toISOString()
    const stuck = { timestamp: at(0), status: 'RUNNING', last_message_at: at(360_000), consumer_lag: 3 }
    await redis.set(keyOf('payout-executor', 9), JSON.stringify(stuck), 'PX', 600_000)
    await redis.zadd('millrace:workers', Date.now() + 600_000, keyOf('payout-executor', 9))
    // The first waits 5 s and then 60 s for its retries, and those of its key behind it.
    const failing = { command: 'reconcile', fail: 'the ledger is closed' }
    const records = [failing, ...Array.from({ length: 51 }, () => ({ command: 'reconcile' }))]
    const topic = 'reconciliation.triggers'
    await produce(
      kafka,
      records.map((record) => ({ topic, partition: 0, key: 'ledger', value: JSON.stringify(record) })),
    )
    await send('delivery.commands', { command: 'schedule-post', fail: 'no such channel' }, 1)
  })

  // D46 D47 D61 D62 D63 D64 D65
  await t.test('each alert fires under its name, with its severity', async () => {
    const expected = [
      'WorkerHeartbeatMissing critical payout-executor-2',
      'WorkerStuckProcessing warning payout-executor-9',
      'DLQFinancial critical escrow.commands.dlq',
      'DLQNonFinancial warning delivery.commands.dlq',
      'ConsumerLagCritical critical reconciliation.triggers',
    ]
    for (const alert of expected) await until(async () => (await firing(page)).includes(alert), LIMIT_MS)
    assert.match(main.output, /"alert":"DLQFinancial","severity":"critical"/)
    // A further letter is told of as it arrives, though its alert fires already.
    await send('escrow.commands', { command: 'refund', fail: 'no such deal' }, 2)
    await until(() => /Alert DLQFinancial: job \S+ has become a dead letter/.test(main.output), LIMIT_MS)
  })

  // D08 D09 D21 D66 D67 D69
  await t.test('each metric is there under its name, by worker and instance', async () => {
    const value = async (name: string, labels: Readonly<Record<string, string>>) =>
      sampleValue(await scrape(), name, labels)
    const of = (worker: string, instance = 1) => ({ worker, worker_instance: `${worker}-${instance}` })
    const topic = 'escrow.commands.dlq'
    // A scrape leaves out what could not be read within a second.
    await until(
      async () =>
        (await value('kafka_consumer_lag', { group: 'reconciliation-worker', topic: 'reconciliation.triggers' })) ===
        52,
      LIMIT_MS,
    )
    for (const worker of WORKERS) {
      const text = await scrape()
      const seconds = sampleValue(text, 'worker_heartbeat_timestamp', of(worker)) ?? 0
      assert.ok(Date.now() / 1_000 - seconds < 60, `${worker} at ${seconds}`)
      assert.ok((sampleValue(text, 'worker_heartbeat_timestamp', of(worker, 2)) ?? 0) < seconds - 30)
    }
    assert.equal(await value('worker_dlq_messages_total', { topic, ...of('refund-executor') }), 1)
    assert.equal(await value('worker_dlq_messages_total', { topic, ...of('payout-executor') }), 0)
    assert.equal(await value('worker_retry_count_total', { ...of('refund-executor'), error: 'Error' }), 1)
    assert.equal(await value('worker_dlq_archived_total', { topic: 'delivery.commands.dlq' }), 1)
    assert.equal(await value('worker_dlq_pending', { topic }), 2)
    assert.equal(await value('worker_retrying', of('reconciliation-worker')), 1)
    // Each worker tells of both with its next heartbeat.
    await until(async () => (await value('worker_consumer_lag', of('reconciliation-worker'))) === 52, LIMIT_MS)
    const lastMessage = async () => (await heartbeat(keyOf('refund-executor', 1))).last_message_at
    await until(async () => (await lastMessage()) !== null, LIMIT_MS)
    assert.equal(await value('worker_presence_up', {}), 1)
  })

  await t.test('serve --preset in another process sees the same', async () => {
    await side.said('"url"')
    const url = urlIn(side.output)
    await until(async () => (await firing(url)).includes('WorkerHeartbeatMissing critical payout-executor-2'), LIMIT_MS)
    assert.ok((await firing(url)).includes('DLQFinancial critical escrow.commands.dlq'))
    await until(
      async () => sampleValue(await scrape(url), 'worker_dlq_pending', { topic: 'escrow.commands.dlq' }) === 2,
    )
    const groups = parseExposition(await scrape(url))
      .get('kafka_consumer_lag')
      ?.samples.map(({ labels }) => labels.group)
    assert.deepEqual(groups?.toSorted(), WORKERS.toSorted())
    side.child.kill('SIGTERM')
    assert.equal((await side.ended).code, 0)
  })

  // D56 D57 D58 D59 D60
  await t.test('/actuator/health has its four components, for all groups', async () => {
    const {
      kafka: reached,
      consumerLag,
      workerHeartbeats,
      dlq,
    } = Actuator.parse(await ask('/actuator/health')).components
    assert.equal(reached.status, 'UP')
    assert.equal(consumerLag.status, 'DEGRADED')
    assert.deepEqual(Object.keys(consumerLag.details).toSorted(), WORKERS.toSorted())
    assert.equal(workerHeartbeats.status, 'DEGRADED')
    assert.deepEqual(
      z.array(z.string()).parse(workerHeartbeats.details.missing).toSorted(),
      WORKERS.map((worker) => `${worker}-2`).toSorted(),
    )
    assert.equal(dlq.status, 'DEGRADED')
    assert.equal(dlq.details.count, 3)
  })

  // D48 D49 D50 D51 D52 D68
  await t.test('dead letters are reviewed, replayed and discarded by their endpoints, with an audit', async () => {
    const [financial, other] = ['escrow.commands.dlq', 'delivery.commands.dlq']
    const post = (path: string, body: object = {}) =>
      ask(path, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) })
    const failed = async () =>
      Letters.parse(await ask(`/internal/v1/dlq/${financial}`)).letters.find(({ original_topic: from }) => from !== '')
    const letter = (await failed()) ?? assert.fail('there is none')
    assert.deepEqual(
      [letter.original_topic, letter.retry_count, letter.worker_instance],
      ['escrow.commands', 1, 'refund-executor-1'],
    )
    const replayed = async (topic: string): Promise<number | null> =>
      sampleValue(await scrape(), 'worker_dlq_replayed_total', { topic })
    const at = { topic: financial, partition: letter.dlq_partition, offset: letter.dlq_offset }
    assert.ok(Done.parse(await post('/internal/v1/dlq/replay', at)).done)
    assert.equal(Replayed.parse(await post(`/internal/v1/dlq/replay-all?topic=${other}`)).replayed, 1)
    assert.deepEqual([await replayed(financial), await replayed(other)], [1, 1])
    // Both fail again. The dashboard has the letters of every group, and what it replays is counted too.
    const shown = async () =>
      Page.parse(await ask('/api/v1/dead-letters')).items.find(({ error }) => error.message === 'no such deal')
    await until(async () => (await shown()) !== undefined, LIMIT_MS)
    await post(`/api/v1/dead-letters/${(await shown())?.job.id}/replay`, { reason: 'the deal is there now' })
    assert.equal(await replayed(financial), 2)
    const reason = encodeURIComponent('of a program that is gone')
    assert.ok(Done.parse(await ask(`/internal/v1/dlq/${financial}/0?reason=${reason}`, { method: 'DELETE' })).done)
    const { items } = Audit.parse(await ask('/api/v1/audit'))
    assert.deepEqual(
      items.map(({ action, type }) => `${action} ${type}`),
      ['discard escrow.commands', 'replay escrow.commands', 'replay delivery.commands', 'replay escrow.commands'],
    )
  })

  // D07 X155
  await t.test('a stop says SHUTTING_DOWN for 60 s, and the keys go with the workers', async () => {
    main.child.kill('SIGTERM')
    const { code, err } = await main.ended
    assert.equal(code, 0, err)
    for (const worker of WORKERS) {
      const last = said.findLast(([name, key]) => name?.toUpperCase() === 'SET' && key === keyOf(worker, 1))
      assert.equal(Heartbeat.parse(JSON.parse(last?.[2] ?? 'null')).status, 'SHUTTING_DOWN')
      assert.deepEqual(last?.slice(3).map(String), ['PX', '60000'])
      assert.equal(await redis.exists(keyOf(worker, 1)), 0)
    }
  })
})
