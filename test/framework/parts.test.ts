/** The parts of the worker framework: a dispatcher, a queue, worker pools and a monitor, each a program of its own. */
import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { defineJob, type Mill, NonRetryable, open, openDesk } from 'millrace'
import { systemClock } from 'millrace/engine'
import type { AlertMessage } from 'millrace/observe'
import { SqliteEngine } from 'millrace/sqlite'
import { TestClock } from 'millrace/testing'
import { BaseWorker, JOB_TYPES, JobDispatcher, type JobType, specOf, toSchedule } from 'millrace/workloads/framework'
import { tempFiles } from '../fixtures/temp-files.ts'

const files = tempFiles()

async function mills(t: TestContext, count: number, clock?: TestClock): Promise<readonly Mill[]> {
  const url = `sqlite:${files.next()}`
  const opened: Mill[] = []
  for (let index = 0; index < count; index += 1) opened.push(await open(url, clock === undefined ? {} : { clock }))
  t.after(() => Promise.all(opened.map((mill) => mill.close())))
  return opened
}

/** A pool of the document: the types that one instance runs. */
function poolOf(ran: string[], types: readonly JobType[]) {
  return types.map((type) =>
    defineJob({
      ...specOf(type),
      run: ({ payload }) => {
        if (payload === 'bad') throw new NonRetryable('no')
        ran.push(type)
      },
    }),
  )
}

// A15
describe('the parts of the picture', () => {
  test('can each be had without the others', async () => {
    const names = async (module: string) => Object.keys(await import(module))
    const dispatcher = await names('../../workloads/framework/dispatcher.ts')
    assert.deepEqual(dispatcher, ['JobDispatcher'])
    assert.ok((await names('../../src/engines/sqlite/engine.ts')).includes('SqliteEngine'), 'the queue')
    assert.ok((await names('../../src/worker/worker.ts')).includes('startWorker'), 'the pool')
    assert.ok(
      (await names('../../src/observe/alerts/dead-letter-alerts.ts')).includes('attachAlerts'),
      'the monitor: alerts',
    )
    assert.ok((await names('../../src/desk/desk.ts')).includes('openDesk'), 'the monitor: admin')
  })

  // A14
  test('work together over one queue, each in a mill of its own', async (t) => {
    const [web, first, second, desktop] = await mills(t, 4)
    assert.ok(web && first && second && desktop)
    assert.ok(web.engine instanceof SqliteEngine, 'the queue')
    const dispatcher = new JobDispatcher(web, Object.values(JOB_TYPES))
    const [one, other]: [string[], string[]] = [[], []]
    const types = ['memory-consolidation', 'pattern-training', 'webhook-dispatch', 'index-optimization'] as const
    const receipts = await Promise.all(types.map((type) => dispatcher.dispatch({ type, data: {} })))
    const bad = await dispatcher.dispatch({ type: 'webhook-dispatch', data: 'bad', tenant: { orgId: 'acme' } })

    await first.work(poolOf(one, ['memory-consolidation', 'pattern-training']))
    await second.work(poolOf(other, ['webhook-dispatch', 'index-optimization']))
    for (const receipt of receipts) await desktop.result(receipt.id)
    await assert.rejects(desktop.result(bad.id), { code: 'ERR_JOB_DEAD' })
    assert.deepEqual(one.toSorted(), ['memory-consolidation', 'pattern-training'])
    assert.deepEqual(other.toSorted(), ['index-optimization', 'webhook-dispatch'])

    const desk = openDesk(desktop)
    assert.deepEqual(
      (await desk.list()).map(({ job }) => job.id),
      [bad.id],
    )
    assert.equal((await desktop.counts())['webhook-dispatch']?.dead, 1)
  })
})

// A16
describe('each kind of work', () => {
  class Sync extends BaseWorker<{ readonly fails?: number }, string> {
    constructor() {
      super('slack-sync', { options: { backoff: { type: 'fixed', delay: 60_000 } } })
    }

    process(data: { readonly fails?: number }, job: { readonly attempt: number }): string {
      if (job.attempt <= (data.fails ?? 0)) throw new Error('slack is away')
      return `start ${job.attempt}`
    }
  }

  /** A dispatcher and a running pool over one file, on a clock that moves when told. */
  async function running(t: TestContext) {
    const clock = new TestClock(Date.UTC(2026, 0, 1))
    const [web, pool] = await mills(t, 2, clock)
    assert.ok(web && pool)
    const worker = new Sync()
    return { clock, web, pool, worker, dispatcher: new JobDispatcher(web, [worker]) }
  }

  test('deferred: it waits its delay, also over a restart', async (t) => {
    const { clock, web, pool, worker, dispatcher } = await running(t)
    const receipt = await dispatcher.dispatch({ type: 'slack-sync', data: {}, options: { delay: 3_600_000 } })
    const early = await pool.work([worker.definition], { keeper: false, poll: '10m' })
    await clock.advance(3_599_999)
    assert.equal((await web.job(receipt.id))?.state, 'queued')
    const stopped = early.stop()
    await clock.advance('30s')
    await stopped
    await pool.work([worker.definition], { keeper: false })
    assert.equal(await web.result(receipt), 'start 1')
  })

  test('retried: it is started again after its wait, until it succeeds', async (t) => {
    const { clock, web, pool, worker, dispatcher } = await running(t)
    const receipt = await dispatcher.dispatch({ type: 'slack-sync', data: { fails: 2 } })
    const settled: string[] = []
    pool.events.on('job.settled', ({ outcome }) => settled.push(outcome.kind))
    const retried = () => pool.events.next('job.settled')
    let next = retried()
    await pool.work([worker.definition], { keeper: false })
    await next
    for (let start = 2; start <= 3; start += 1) {
      next = retried()
      await clock.advance(60_000)
      await next
    }
    assert.deepEqual(settled, ['retry', 'retry', 'complete'])
    assert.equal(await web.result(receipt), 'start 3')
  })

  test('scheduled: the clock enqueues it', async (t) => {
    const { clock, web, pool, worker } = await running(t)
    const schedule = { name: 'sync', cron: '0 */15 * * * *', jobType: 'slack-sync', jobData: {} } as const
    const schedules = [toSchedule({ ...schedule, options: { limit: 3 } })]
    await web.keep({ schedules, jobs: [worker.definition], interval: '10m' })
    await pool.work([worker.definition], { keeper: false, poll: '10m' })
    for (let runs = 1; runs <= 3; runs += 1) {
      await clock.advance(15 * 60_000 - (clock.nowMs() % (15 * 60_000)))
      // The disk takes real time, in which the hours of the test's clock would be over.
      for (let looks = 0; (await web.jobs({ state: 'completed' })).length < runs; looks += 1) {
        assert.ok(looks < 3_000, `run ${runs} was not completed`)
        await clock.advance(100)
        await systemClock.sleep(10)
      }
    }
    await clock.advance('1h')
    const jobs = await web.jobs()
    assert.deepEqual(
      jobs.map(({ state, runAtMs }) => [state, new Date(runAtMs).toISOString().slice(11, 16)]).toReversed(),
      [
        ['completed', '00:15'],
        ['completed', '00:30'],
        ['completed', '00:45'],
      ],
    )
  })

  test('batched: many are stored in one call, and each runs', async (t) => {
    const { web, pool, worker, dispatcher } = await running(t)
    const receipts = await dispatcher.dispatchMany({ type: 'slack-sync', data: Array(250).fill({}) })
    assert.equal(new Set(receipts.map(({ id }) => id)).size, 250)
    await pool.work([worker.definition], { concurrency: 50, keeper: false })
    const results = await Promise.all(receipts.map((receipt) => web.result(receipt)))
    assert.deepEqual(results, Array(250).fill('start 1'))
    assert.deepEqual(await dispatcher.dispatchMany({ type: 'slack-sync', data: [] }), [])
  })
})

// A15
test('the monitor of a pool hears of every dead letter', async (t) => {
  const alerts: AlertMessage[] = []
  const url = `sqlite:${files.next()}`
  const web = await open(url)
  const pool = await open(url, { alerter: { send: (alert) => alerts.push(alert) } })
  t.after(() => Promise.all([web.close(), pool.close()]))
  await pool.work(poolOf([], ['data-deletion']))
  const dead = pool.events.next('job.settled')
  const bad = await new JobDispatcher(web, ['data-deletion']).dispatch({ type: 'data-deletion', data: 'bad' })
  await dead
  assert.deepEqual(
    alerts.map(({ severityLabel, labels }) => [severityLabel, labels.jobId]),
    [['high', bad.id]],
  )
})
