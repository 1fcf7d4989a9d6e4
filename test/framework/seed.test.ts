/** Code in the style of the document that the framework comes from runs: its workers, schedules, health check and dead letters. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { open } from 'millrace'
import type { AlertMessage } from 'millrace/observe'
import { TestClock } from 'millrace/testing'
import {
  DeadLetterManager,
  JOB_TYPES,
  type JobConfig,
  JobDispatcher,
  type ScheduledJob,
  WorkerHealthChecker,
  WorkerScheduler,
} from 'millrace/workloads/framework'
import { tempFiles } from '../fixtures/temp-files.ts'
import { EmbeddingBatchWorker } from './seed/embedding-batch.ts'
import { type Memory, MemoryConsolidationWorker } from './seed/memory-consolidation.ts'
import { WebhookDispatchWorker } from './seed/webhook-dispatch.ts'

const files = tempFiles()

/** Every port of the three workers, with what was asked of it. */
function ports() {
  const asked: string[] = []
  const vectors: Readonly<Record<string, readonly number[]>> = { a: [1, 0], b: [1, 0.1], c: [0, 1] }
  const memory = (id: string): Memory => ({ id, type: 'episodic', content: `fact ${id}`, importance: 0.8 })
  const memoryRepo = {
    findByIds: async (ids: readonly string[]) => ids.map(memory),
    save: async (saved: Memory) => {
      asked.push(`save ${saved.content} from ${saved.sourceId === undefined ? 'nothing' : 'its job'}`)
      return saved
    },
    updateImportance: async (id: string, importance: number) => void asked.push(`importance ${id} ${importance}`),
  }
  const vectorStore = {
    getById: async (id: string) => vectors[id] ?? [],
    reindex: async (memories: readonly Memory[]) => void asked.push(`reindex ${memories.length}`),
    upsert: async (namespace: string, entries: readonly object[]) =>
      void asked.push(`upsert ${namespace} ${entries.length}`),
  }
  const llm = { complete: async () => ({ text: ' a and b ' }) }
  const embedder = { embedBatch: async (texts: readonly string[]) => texts.map(() => [1, 2]) }
  const db = { query: async (sql: string) => void asked.push(sql.slice(0, 'UPDATE documents'.length)) }
  const http = {
    post: async (url: string) => {
      if (url === 'gone') throw Object.assign(new Error('410 Gone'), { status: 410 })
      return { status: 200, data: 'ok' }
    },
  }
  const webhookRepo = {
    findById: async (id: string) => ({ url: id, isEnabled: true, maxFailures: 1 }),
    recordDelivery: async (delivery: object) => void asked.push(`delivery ${Reflect.get(delivery, 'status')}`),
    updateStats: async () => {},
    countRecentFailures: async () => 1,
    disable: async (id: string, reason: string) => void asked.push(`disable ${id}: ${reason}`),
  }
  return { asked, memoryRepo, vectorStore, llm, embedder, db, http, webhookRepo }
}

// A54 X036 X037
for (const engine of ['memory:', 'sqlite:']) {
  test(`the three workers run on ${engine}`, async (t) => {
    const url = engine === 'sqlite:' ? `sqlite:${files.next()}` : engine
    const mill = await open(url)
    t.after(() => mill.close())
    const alerts: AlertMessage[] = []
    const lines: string[] = []
    const write = (text: string) => void lines.push(text)
    const outlets = {
      log: { debug: write, info: write, warn: write, error: write },
      alerter: { send: (alert: AlertMessage) => alerts.push(alert) },
    }
    const { asked, memoryRepo, vectorStore, llm, embedder, db, http, webhookRepo } = ports()
    const workers = [
      new MemoryConsolidationWorker(memoryRepo, vectorStore, llm, outlets),
      new EmbeddingBatchWorker(embedder, vectorStore, db, outlets),
      new WebhookDispatchWorker(http, webhookRepo, outlets),
    ]
    const dispatcher = new JobDispatcher(mill, workers)
    const configs: readonly JobConfig[] = [
      {
        type: JOB_TYPES.MEMORY_CONSOLIDATION,
        data: { workspaceId: 'w', userId: 'u', memoryIds: ['a', 'b', 'c'], consolidationType: 'merge' },
      },
      {
        type: JOB_TYPES.EMBEDDING_BATCH,
        data: {
          items: Array.from({ length: 33 }, (_, n) => ({ sourceId: `s${n}`, text: `text ${n}` })),
          namespace: 'documents',
          updateTable: 'documents',
          updateColumn: 'embedding_id',
        },
      },
      { type: JOB_TYPES.WEBHOOK_DISPATCH, data: { webhookId: 'ok', payload: {}, signature: 's' } },
      {
        type: JOB_TYPES.WEBHOOK_DISPATCH,
        data: { webhookId: 'gone', payload: {}, signature: 's' },
        options: { attempts: 5, backoff: { type: 'fixed', delay: 0 } },
        tenant: { orgId: 'acme' },
      },
    ]
    const receipts = await Promise.all(configs.map((config) => dispatcher.dispatch(config)))
    await mill.work(workers.map((worker) => worker.definition))
    const [consolidated, embedded, sent] = await Promise.all(
      receipts.slice(0, 3).map((receipt) => mill.result(receipt)),
    )
    const gone = receipts[3] ?? assert.fail()
    await assert.rejects(mill.result(gone), { code: 'ERR_JOB_DEAD' })

    assert.deepEqual(consolidated, {
      consolidated: true,
      clustersProcessed: 2,
      memoriesCreated: 1,
      sourceMemoriesProcessed: 3,
    })
    assert.partialDeepStrictEqual(embedded, { total: 33, succeeded: 33, failed: 0 })
    assert.partialDeepStrictEqual(sent, { success: true, statusCode: 200 })
    assert.deepEqual(asked.toSorted(), [
      'UPDATE documents',
      'UPDATE documents',
      'delivery failed',
      'delivery success',
      'disable gone: max_failures_exceeded',
      'importance a 0.4',
      'importance b 0.4',
      'reindex 1',
      'save a and b from its job',
      'upsert documents 1',
      'upsert documents 32',
    ])

    await mill.close() // the hooks have run by then
    assert.deepEqual(
      alerts.map(({ severityLabel, title, text, labels }) => ({ severityLabel, title, text, labels })),
      [
        {
          severityLabel: 'warning',
          title: 'Worker webhook-dispatch final failure',
          text: `Job ${gone.id} failed after 1 attempts: 410 Gone`,
          labels: { jobType: 'webhook-dispatch', jobId: gone.id, tenantId: 'acme' },
        },
      ],
    )
    for (const { id } of receipts) assert.ok(lines.includes(`Starting job ${id}`))
    assert.equal(lines.filter((line) => line.startsWith('Completed job')).length, 3)
    assert.ok(lines.includes(`Failed job ${gone.id}`))
    assert.ok(workers.flatMap(({ durations }) => durations).every((ms) => ms >= 0 && ms < 60_000))
  })
}

const SCHEDULED_JOBS: ScheduledJob[] = [
  {
    name: 'session-cleanup',
    cron: '0 */15 * * * *',
    jobType: JOB_TYPES.SESSION_CLEANUP,
    jobData: { maxAge: 24 * 60 * 60 * 1000 },
  },
  {
    name: 'memory-importance-decay',
    cron: '0 0 */6 * * *',
    jobType: JOB_TYPES.MEMORY_IMPORTANCE_DECAY,
    jobData: { decayFactor: 0.99 },
  },
  {
    name: 'index-optimization',
    cron: '0 0 3 * * *',
    jobType: JOB_TYPES.INDEX_OPTIMIZATION,
    jobData: { threshold: 0.8 },
    options: { timezone: 'UTC' },
  },
  {
    name: 'pattern-training-daily',
    cron: '0 0 4 * * *',
    jobType: JOB_TYPES.PATTERN_TRAINING,
    jobData: { batchSize: 1000, epochs: 5 },
    options: { timezone: 'UTC' },
  },
  { name: 'quota-check', cron: '0 0 * * * *', jobType: JOB_TYPES.QUOTA_CHECK, jobData: {} },
]

// A130..A139
test('its scheduler starts, reschedules and stops', async (t) => {
  const clock = new TestClock(Date.UTC(2026, 0, 1, 2, 59, 50))
  const mill = await open('memory:', { clock })
  t.after(() => mill.close())
  const scheduler = new WorkerScheduler(mill, { schedules: SCHEDULED_JOBS })
  await scheduler.start()
  await clock.advance('10s')
  const enqueued = async () => new Map((await mill.jobs()).map(({ type, payload }) => [type, payload]))
  assert.deepEqual(
    await enqueued(),
    new Map([
      ['session-cleanup', '{"maxAge":86400000}'],
      ['index-optimization', '{"threshold":0.8}'],
      ['quota-check', '{}'],
    ]),
  )
  await scheduler.reschedule('memory-importance-decay', '30 0 3 * * *')
  await assert.rejects(scheduler.reschedule('nightly', '0 0 3 * * *'), { message: 'Unknown scheduled job: nightly' })
  await clock.advance('30s')
  assert.equal((await enqueued()).get('memory-importance-decay'), '{"decayFactor":0.99}')
  await scheduler.stop()
  await clock.advance('2h')
  assert.equal((await mill.jobs()).length, 4)
})

// A151 A152 A153 A169 A170 A173
test('its health checker and dead-letter manager do what they say', async (t) => {
  const mill = await open('memory:')
  t.after(() => mill.close())
  const { http, webhookRepo } = ports()
  const worker = new WebhookDispatchWorker(http, webhookRepo, {})
  const deadLetterManager = new DeadLetterManager(mill)
  const moved = Promise.withResolvers<string>()
  worker.onFailed = async (job, error, final) => {
    if (final) moved.resolve((await deadLetterManager.moveToDeadLetter(job, error)).id)
  }
  const data = { webhookId: 'gone', payload: {}, signature: 's' }
  await new JobDispatcher(mill, [worker]).dispatch({ type: 'webhook-dispatch', data })
  await mill.work([worker.definition])
  const id = await moved.promise

  const { status, checks, details } = await new WorkerHealthChecker(mill).check()
  assert.deepEqual([status, checks.redis.status, checks.workers.status], ['degraded', 'healthy', 'healthy'])
  assert.deepEqual(details, { activeWorkers: 1, totalQueues: 1, oldestWaitingJob: null, deadLetterCount: 1 })

  const job = await deadLetterManager.retry(id)
  assert.deepEqual([job.type, job.attempts], ['webhook-dispatch', 3])
  await assert.rejects(deadLetterManager.retry('nothing'), { message: 'Dead letter not found: nothing' })
  await mill.result(job.id).catch(() => {})
  assert.equal(await deadLetterManager.purge({ jobType: 'webhook-dispatch' }, { force: true }), 1)
})
