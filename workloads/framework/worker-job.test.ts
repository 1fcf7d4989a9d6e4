import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { z } from 'zod'
import { drain, openForTest } from '../../src/testing/index.ts'
import { BaseWorker, type HookedJob, workerAlert } from './index.ts'
import { again, outletsOf, Told } from './rig.ts'

type Seen = readonly [where: string, job: HookedJob]

/** Notes the job that each hook and `process` were given. */
class Noting extends Told {
  readonly seen: Seen[] = []
  override onStart(job: HookedJob): void {
    this.seen.push(['onStart', job])
  }
  override async process(data: unknown, job: Parameters<Told['process']>[1]): Promise<unknown> {
    this.seen.push(['process', job])
    return super.process(data, job)
  }
  override onProgress(job: HookedJob): void {
    this.seen.push(['onProgress', job])
  }
  override onComplete(job: HookedJob): void {
    this.seen.push(['onComplete', job])
  }
  override onFailed(job: HookedJob): void {
    this.seen.push(['onFailed', job])
  }
}

describe('the job of process and of hooks', () => {
  // A62
  test('has its id, name, data, options and times in all of them', async () => {
    await using stage = await openForTest({ startMs: Date.UTC(2026, 0, 1) })
    const { mill, clock } = stage
    const worker = new Noting((_data, job) => job.updateProgress(50), {}, outletsOf(stage).outlets)
    const { id } = await mill.enqueue(worker.definition, { channel: 7 }, { delay: '2s', timeout: '9s', key: 'k' })
    await clock.advance('2s')
    await drain(mill, [worker.definition])
    assert.deepEqual(
      worker.seen.map(([where]) => where),
      ['onStart', 'process', 'onProgress', 'onComplete'],
    )
    for (const [, job] of worker.seen) {
      assert.partialDeepStrictEqual(job, { id, name: 'slack-sync', data: { channel: 7 }, attempt: 1 })
      assert.equal(job.processedOn, Date.UTC(2026, 0, 1) + 2_000)
      assert.deepEqual(job.opts, {
        priority: 0,
        attempts: 3,
        timeout: 9_000,
        backoff: { type: 'exponential', delay: 1_000 },
        delay: 2_000,
        removeOnComplete: false,
        removeOnFail: false,
        idempotencyKey: 'k',
      })
    }
  })

  // A47..A51 A53
  test('has the effective options: those of the job, and the defaults of its type', async () => {
    await using stage = await openForTest()
    const { mill } = stage
    const cases = [
      [
        'memory-consolidation',
        {},
        { priority: 5, attempts: 3, backoff: { type: 'exponential', delay: 5_000 }, timeout: 300_000 },
      ],
      [
        'embedding-batch',
        { attempts: 2 },
        { priority: 10, attempts: 2, backoff: { type: 'exponential', delay: 2_000 }, timeout: 60_000 },
      ],
      [
        'webhook-dispatch',
        { removeOnComplete: 5 },
        { priority: 15, attempts: 10, timeout: 30_000, removeOnComplete: 5 },
      ],
      [
        'pattern-training',
        { priority: 10 },
        { priority: 0, attempts: 2, backoff: { type: 'fixed', delay: 60_000 }, timeout: 3_600_000 },
      ],
      ['pattern-training', {}, { priority: 1 }],
      ['session-cleanup', { removeOnFail: true }, { priority: 3, attempts: 3, timeout: 120_000, removeOnFail: true }],
    ] as const
    for (const [type, options, expected] of cases) {
      const worker = new Noting(() => null, {}, {}, type)
      await mill.enqueue(worker.definition, null, options)
      await drain(mill, [worker.definition])
      assert.partialDeepStrictEqual(worker.seen[1]?.[1].opts, expected)
    }
    const listed = new Noting(() => null)
    await mill.enqueue(listed.definition, null, { backoff: { kind: 'list', delays: ['1s'] } })
    await drain(mill, [listed.definition])
    assert.equal('backoff' in (listed.seen[0]?.[1].opts ?? {}), false)
  })

  // X037
  test('counts its attempts as BullMQ does: before the end those before it, after it this one too', async () => {
    await using stage = await openForTest()
    const worker = new Noting(() => Promise.reject(new Error('no')), { options: again })
    await stage.mill.enqueue(worker.definition, null)
    await drain(stage.mill, [worker.definition])
    assert.deepEqual(
      worker.seen.map(([where, { attemptsMade, attempt }]) => [where, attemptsMade, attempt]),
      [1, 2, 3].flatMap((attempt) => [
        ['onStart', attempt - 1, attempt],
        ['process', attempt - 1, attempt],
        ['onFailed', attempt, attempt],
      ]),
    )
    assert.equal('delay' in (worker.seen.at(-1)?.[1].opts ?? {}), false)
  })

  test('is checked from process on: before that, and if it is invalid, its data is what was stored', async () => {
    const payload = z.object({ at: z.string().transform((text) => text.length) })
    const worker = new (class extends BaseWorker<{ at: number }, null, { at: string }> {
      readonly seen: unknown[] = []
      process({ at }: { at: number }): null {
        this.seen.push(at)
        return null
      }
      override onStart({ data }: HookedJob): void {
        this.seen.push(data)
      }
      override onComplete({ data }: HookedJob): void {
        this.seen.push(data)
      }
      override onFailed({ data }: HookedJob): void {
        this.seen.push(data)
      }
    })('slack-sync', { payload })
    await using stage = await openForTest()
    const { mill } = stage
    const { id } = await mill.enqueue(worker.definition, { at: 'noon' })
    const stored = (await mill.job(id)) ?? assert.fail()
    const parts = { delayMs: 0, runAtMs: null, latest: null }
    await drain(mill, [worker.definition])
    await mill.engine.enqueue([{ ...stored, ...parts, id: 'bad', payload: '{"at":7}' }])
    await drain(mill, [worker.definition])
    await mill.engine.enqueue([{ ...stored, ...parts, id: 'torn', payload: '{' }])
    await drain(mill, [worker.definition])
    assert.deepEqual(worker.seen, [{ at: 'noon' }, 4, { at: 4 }, { at: 7 }, { at: 7 }, '{', '{'])
  })

  test('stores progress from onStart once process runs, and none when it is over or never ran', async () => {
    const payload = z.object({ n: z.number() })
    const answers: boolean[] = []
    const told: Promise<boolean>[] = []
    class Early extends BaseWorker<{ n: number }, null> {
      process(): Promise<null> {
        return new Promise((resolve) => setImmediate(resolve, null))
      }
      override onStart(job: HookedJob): void {
        told.push(job.updateProgress({ phase: 'early' }).then((isStored) => answers.push(isStored) > 0))
      }
      override onComplete(job: HookedJob): void {
        told.push(job.updateProgress(100).then((isStored) => answers.push(isStored) > 0))
      }
    }
    await using stage = await openForTest()
    const { mill } = stage
    const { definition } = new Early('slack-sync', { payload })
    const { id } = await mill.enqueue(definition, { n: 1 })
    await drain(mill, [definition])
    await Promise.all(told)
    assert.deepEqual(answers, [true, false])
    assert.deepEqual((await mill.job(id))?.progress, { phase: 'early' })
    const stored = (await mill.job(id)) ?? assert.fail()
    await mill.engine.enqueue([{ ...stored, id: 'bad', payload: '{}', delayMs: 0, runAtMs: null, latest: null }])
    await drain(mill, [definition])
    await Promise.all(told)
    assert.deepEqual(answers, [true, false, false])
  })
})

describe('an alert that a worker sends', () => {
  class Alerting extends BaseWorker {
    async process(): Promise<null> {
      const tags = { jobType: this.type, tenantId: this.tenantContext?.orgId }
      await this.metrics.alert({ severity: 'high', title: 'Disk is full', message: '97 %, told ann@example.com', tags })
      return null
    }
  }
  const run = async (outlets: Partial<ConstructorParameters<typeof Alerting>[2]>) => {
    await using stage = await openForTest()
    const own = outletsOf(stage)
    const { definition } = new Alerting('slack-sync', {}, { ...own.outlets, ...outlets })
    await stage.mill.enqueue(definition, null)
    const { complete } = await drain(stage.mill, [definition])
    return { complete, warned: own.lines.filter(({ level }) => level === 'warn' || level === 'error') }
  }

  // X030
  test('goes to its alerter, and a log line if that fails', async () => {
    const alerts: unknown[] = []
    const sent = await run({ alerter: { send: (alert) => alerts.push(alert.severity, workerAlert(alert)) } })
    const expected = {
      severity: 'high',
      title: 'Disk is full',
      message: '97 %, told [email]',
      tags: { jobType: 'slack-sync' },
    }
    assert.deepEqual(alerts, ['error', expected])
    assert.deepEqual(sent, { complete: 1, warned: [] })
    const { complete, warned } = await run({ alerter: { send: () => Promise.reject(new Error('pager down')) } })
    assert.equal(complete, 1)
    assert.deepEqual(
      warned.map(({ text, fields }) => [text, fields.title, fields.error]),
      [['An alert could not be sent', 'Disk is full', 'pager down']],
    )
  })

  test('is a warning in the log without one', async () => {
    const { complete, warned } = await run({})
    assert.equal(complete, 1)
    assert.partialDeepStrictEqual(warned, [
      { level: 'warn', text: 'Alert', fields: { severity: 'high', title: 'Disk is full', text: '97 %, told [email]' } },
    ])
  })

  test('needs an outlet that exists', () => {
    const misspelt: object = { alerts: { send: () => null } }
    assert.throws(() => new Alerting('slack-sync', {}, misspelt), { code: 'ERR_OPTION_INVALID', message: /alerter/ })
  })
})
