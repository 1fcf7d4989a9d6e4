/** Wherever a user passes options, a name that is not known is refused: it would change nothing, and nobody would be told. */
import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { after, before, describe, test } from 'node:test'
import { createLog, defineJob, type Mill, open, openDesk } from 'millrace'
import { createAdmin } from 'millrace/http'
import {
  attachMetrics,
  attachPresence,
  checkHealth,
  healthRules,
  MemoryPresence,
  startAlerting,
  webhookSink,
} from 'millrace/observe'
import { openOutbox } from 'millrace/outbox'
import { drain, openForTest } from 'millrace/testing'
import { collectMetrics, JobQueueRepository, JobWorker, monitorDeadLetters } from 'millrace/workloads/conversations'
import { createEmbeddingQueue } from 'millrace/workloads/embeddings'
import { watchMetrics } from 'millrace/workloads/escrow'

const job = defineJob({ type: 'greet', run: () => 'hello' })
const by = { who: 'ann', reason: 'a test' }
let mill: Mill

before(async () => {
  mill = await open('memory:', { jobs: [job] })
})
after(() => mill.close())

/** What a user without types, or with a spread, may pass: each has one name too many. */
const wrong = <Options extends object>(options: Options): Options => ({ ...options, nonsense: 1 })

const slip = (options: object): object => options

const repository = () => new JobQueueRepository(new DatabaseSync(':memory:'))

const CALLS: Readonly<Record<string, () => unknown>> = {
  defineJob: () => defineJob(wrong({ type: 'greet' })),
  'defineJob backoff': () => defineJob({ type: 'greet', backoff: wrong({ kind: 'fixed', delay: 1 }) }),
  'defineJob limit': () => defineJob({ type: 'greet', limit: wrong({ max: 1, per: '1s' }) }),
  'defineJob retention': () => defineJob({ type: 'greet', retention: wrong({ completed: '1d' }) }),
  'defineJob hooks': () => defineJob({ type: 'greet', hooks: wrong({}) }),
  'defineJob schedule': () => defineJob({ type: 'greet', schedule: wrong({ cron: '* * * * *' }) }),
  enqueue: () => mill.enqueue(job, null, wrong({})),
  'enqueue backoff': () => mill.enqueue(job, null, { backoff: wrong({ kind: 'fixed', delay: 1 }) }),
  'enqueue latest': () => mill.enqueue(job, null, { latest: wrong({ key: 'k', seq: 1 }) }),
  'enqueue tenant': () => mill.enqueue(job, null, { tenant: wrong({ orgId: 'o' }) }),
  enqueueMany: () => mill.enqueueMany(job, [null], wrong({})),
  enqueueFlow: () => mill.enqueueFlow({ one: { job, payload: null } }, wrong({})),
  'a step of enqueueFlow': () => mill.enqueueFlow({ one: wrong({ job, payload: null }) }),
  open: () => open('memory:', wrong({})),
  work: () => mill.work([job], wrong({})),
  'work retention': () => mill.work([job], { retention: wrong({}) }),
  keep: () => mill.keep(wrong({})),
  'keep retention': () => mill.keep({ retention: wrong({}) }),
  result: () => mill.result('x', wrong({})),
  jobs: () => mill.jobs(wrong({})),
  cancel: () => mill.cancel('x', wrong({})),
  pause: () => mill.pause('greet', wrong({})),
  resume: () => mill.resume('greet', wrong({})),
  'schedules.upsert': () => mill.schedules.upsert('s', wrong({ type: 'greet', cron: '* * * * *' })),
  'schedules.upsert options': () =>
    mill.schedules.upsert('s', { type: 'greet', cron: '* * * * *', options: wrong({ priority: 1 }) }),
  'schedules.reschedule': () => mill.schedules.reschedule('s', '* * * * *', wrong({})),
  openDesk: () => openDesk(mill, wrong({})),
  'desk.list': () => openDesk(mill).list(wrong({})),
  'desk.groups': () => openDesk(mill).groups(wrong({})),
  'desk.replay': () => openDesk(mill).replay('x', by, wrong({})),
  'desk.replayAll': () => openDesk(mill).replayAll({}, by, wrong({})),
  'desk.replayAll selection': () => openDesk(mill).replayAll(wrong({ type: 'greet' }), by),
  'desk.discard': () => openDesk(mill).discard({}, by, wrong({})),
  'desk.purge selection': () => openDesk(mill).purge(wrong({ ids: [] }), by),
  'desk.purge who': () => openDesk(mill).purge({ ids: [] }, wrong(by)),
  'desk.audit': () => openDesk(mill).audit(wrong({})),
  attachMetrics: () => attachMetrics(mill, wrong({})),
  watchMetrics: () => watchMetrics(wrong({ dlqTopicOf: () => null })),
  attachPresence: () => attachPresence(mill, wrong({ presence: new MemoryPresence() })),
  startAlerting: () => startAlerting(mill, wrong({ rules: [] })),
  webhookSink: () => webhookSink('http://127.0.0.1:1/', wrong({})),
  healthRules: () => healthRules(wrong({})),
  checkHealth: () => checkHealth(mill, wrong({ presence: new MemoryPresence() })),
  createLog: () => createLog(wrong({})),
  createAdmin: () => createAdmin(mill, wrong({})),
  'admin.listen': async () => {
    const admin = createAdmin(mill, { page: null })
    await admin.listen(wrong({ port: 0 })).finally(() => admin.close())
  },
  openOutbox: () => openOutbox(wrong({ store: 'sqlite::memory:', target: 'memory:' })),
  openForTest: () => openForTest(wrong({})),
  drain: () => drain(mill, [job], wrong({})),
  'sqlite URL': () => open('sqlite::memory:?nonsense=1'),
  'redis URL': () => open('redis://127.0.0.1:1?nonsense=1'),
  'kafka URL': () => open('kafka://127.0.0.1:1?nonsense=1'),
  'postgres URL': () => open('postgres://127.0.0.1:1/x?nonsense=1'),
  'new JobQueueRepository': () => new JobQueueRepository(new DatabaseSync(':memory:'), wrong({ types: [] })),
  'JobQueueRepository.create': () => repository().create(wrong({ type: 'greet', payload: null })),
  'new JobWorker': () => new JobWorker(wrong({ db: new DatabaseSync(':memory:'), handlers: { greet: () => {} } })),
  collectMetrics: () => collectMetrics(new DatabaseSync(':memory:'), 1, wrong({})),
  monitorDeadLetters: () =>
    monitorDeadLetters(
      wrong({ engine: mill.engine, alerter: { send: () => {} }, log: createLog({ level: 'silent' }) }),
    ),
  createEmbeddingQueue: () =>
    createEmbeddingQueue(wrong({ embed: async () => [1], store: { find: async () => null, save: async () => true } })),
}

describe('an option that nobody knows is refused', () => {
  for (const [name, call] of Object.entries(CALLS)) {
    test(name, { timeout: 120_000 }, async () => {
      await assert.rejects(
        async () => call(),
        (error: unknown) => error instanceof Error && /nonsense/.test(error.message),
      )
    })
  }

  const hints: Readonly<Record<string, readonly [call: () => unknown, expected: RegExp]>> = {
    'a transaction under another name': [
      () => mill.enqueue(job, null, slip({ tx: {} })),
      /'tx' is not an option of enqueue; did you mean 'within'\?/,
    ],
    'another spelling': [
      () => repository().create({ type: 'greet', payload: null, ...{ idempotencyKey: 'k' } }),
      /'idempotencyKey' is not an option of create; did you mean 'idempotency_key'\?/,
    ],
    'another spelling of a number': [
      () => repository().create({ type: 'greet', payload: null, ...{ maxRetries: 1 } }),
      /did you mean 'max_retries'\?/,
    ],
    'a slip': [() => mill.work([job], slip({ concurency: 1 })), /did you mean 'concurrency'\?/],
  }
  for (const [name, [call, expected]] of Object.entries(hints)) {
    test(`${name}: the near name is told`, async () => {
      await assert.rejects(async () => call(), { code: 'ERR_OPTION_INVALID', message: expected })
    })
  }

  test('a name without a value counts as left out', async () => {
    await mill.enqueue(job, null, slip({ tx: undefined }))
  })
})
