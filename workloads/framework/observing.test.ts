import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { NonRetryable } from '../../src/index.ts'
import { drain, openForTest } from '../../src/testing/index.ts'
import { workerAlert } from './alerts.ts'
import { again, outletsOf, Told } from './rig.ts'

describe('what a worker as a class tells', () => {
  // A55 A56 A58 A59 A61 A62 A63 A68 X036
  test('of a job that completes: counters, its time and lines under its name', async () => {
    await using stage = await openForTest()
    const { mill, clock } = stage
    const { counted, timed, lines, outlets } = outletsOf(stage)
    const worker = new Told(
      async (_data, job) => {
        await job.updateProgress({ phase: 'half', percent: 50 })
        await clock.sleep(200)
        return 'done'
      },
      {},
      outlets,
    )
    const { id } = await mill.enqueue(worker.definition, { secret: 'payload' })
    const reported = mill.events.next('job.progress')
    await mill.work([worker.definition], { keeper: false })
    await reported
    const over = mill.events.next('job.settled')
    await clock.advance(200)
    await over
    await stage.close()
    assert.deepEqual(counted, ['worker.slack-sync.started', 'worker.slack-sync.completed'])
    assert.deepEqual(timed, [['worker.slack-sync.duration', 200]])
    const about = { name: 'worker:slack-sync', job_id: id, attempts: 1, attempts_max: 3 }
    assert.deepEqual(lines, [
      { level: 'info', text: 'Job started', fields: about },
      { level: 'debug', text: 'Job progress', fields: { ...about, progress: { phase: 'half', percent: 50 } } },
      { level: 'info', text: 'Job completed', fields: about },
    ])
    const progress = { phase: 'half', percent: 50 }
    assert.deepEqual(worker.calls, [['onStart', 1], ['process'], ['onProgress', progress], ['onComplete', 'done']])
    // I12
    assert.equal(JSON.stringify([lines, counted]).includes('payload'), false)
  })

  // A64 A65 A66 A67 X028 X037
  test('of a job that fails to the end: each failure, and one alert after the last', async () => {
    const alerts: object[] = []
    await using stage = await openForTest({ alerter: { send: (alert) => alerts.push(workerAlert(alert)) } })
    const { mill } = stage
    const { counted, lines, outlets } = outletsOf(stage)
    const cause = new Error('no channel for ann@example.com')
    const told = () => Promise.reject(cause)
    const worker = new Told(told, { options: again }, outlets)
    const { id } = await mill.enqueue(worker.definition, null, { tenant: { orgId: 'acme', workspaceId: 'w1' } })
    let alertsBeforeLast = -1
    mill.events.on('job.started', ({ attempt }) => {
      if (attempt === 3) alertsBeforeLast = alerts.length
    })
    assert.deepEqual(await drain(mill, [worker.definition]), { complete: 0, retry: 2, dead: 1, release: 0 })
    assert.deepEqual(
      counted.filter((name) => name === 'worker.slack-sync.failed'),
      Array(3).fill('worker.slack-sync.failed'),
    )
    assert.ok(counted.every((name) => !name.includes('acme')))
    const failed = lines.filter(({ level }) => level === 'error')
    const about = { name: 'worker:slack-sync', job_id: id, attempts_max: 3, error: 'no channel for [email]' }
    assert.deepEqual(
      failed.map(({ text, fields }) => [text, fields]),
      [
        ['Job failed', { ...about, attempts: 1, final: false }],
        ['Job failed', { ...about, attempts: 2, final: false }],
        ['Job failed', { ...about, attempts: 3, final: true }],
      ],
    )
    assert.deepEqual(
      worker.calls.filter(([name]) => name === 'onFailed'),
      [
        ['onFailed', cause, false],
        ['onFailed', cause, false],
        ['onFailed', cause, true],
      ],
    )
    assert.equal(alertsBeforeLast, 0)
    assert.deepEqual(alerts, [
      {
        severity: 'warning',
        title: 'Worker slack-sync final failure',
        message: `job ${id} is a dead letter after 3 of 3 attempts: no channel for [email]`,
        tags: { jobType: 'slack-sync', jobId: id, tenantId: 'acme' },
      },
    ])
  })

  // A168 X038
  test('of a critical job that dies: one alert, and a louder one', async () => {
    const alerts: object[] = []
    await using stage = await openForTest({ alerter: { send: (alert) => alerts.push(workerAlert(alert)) } })
    const { mill } = stage
    const fail = () => Promise.reject(new NonRetryable('410 Gone'))
    const tenant = { orgId: 'acme', workspaceId: 'w1' }
    const ids: string[] = []
    for (const type of ['webhook-dispatch', 'audit-export', 'data-deletion', 'quota-check']) {
      const { definition } = new Told(fail, {}, {}, type)
      ids.push((await mill.enqueue(definition, null, { tenant })).id)
      await drain(mill, [definition])
    }
    const [hook = '', , , check = ''] = ids
    assert.equal(alerts.length, 4)
    assert.deepEqual(alerts[0], {
      severity: 'high',
      title: 'Critical job moved to dead letter: webhook-dispatch',
      message: `job ${hook} is a dead letter after 1 of 10 attempts: 410 Gone`,
      tags: { jobType: 'webhook-dispatch', jobId: hook, tenantId: 'acme' },
      metadata: { jobType: 'webhook-dispatch', jobId: hook, tenant },
    })
    for (const alert of alerts.slice(0, 3)) assert.partialDeepStrictEqual(alert, { severity: 'high' })
    assert.partialDeepStrictEqual(alerts[3], { severity: 'warning', tags: { jobId: check } })
  })

  test('nothing breaks when a collector or a hook does', async () => {
    await using stage = await openForTest()
    const { mill } = stage
    const { lines, outlets } = outletsOf(stage)
    const broken = (): never => {
      throw new Error('collector down')
    }
    class Clumsy extends Told {
      override onStart(): never {
        throw new Error('hook down')
      }
    }
    const metrics = { increment: broken, timing: broken }
    const worker = new Clumsy(() => 'done', {}, { ...outlets, metrics })
    const receipt = await mill.enqueue(worker.definition, null)
    await drain(mill, [worker.definition])
    assert.equal(await mill.result(receipt), 'done')
    assert.deepEqual(
      lines.filter(({ level }) => level === 'warn').map(({ fields }) => [fields.metric, fields.error]),
      [
        ['worker.slack-sync.started', 'collector down'],
        ['worker.slack-sync.completed', 'collector down'],
        ['worker.slack-sync.duration', 'collector down'],
      ],
    )
    assert.deepEqual(worker.calls, [['process'], ['onComplete', 'done']])
    assert.equal(stage.events.filter(({ name }) => name === 'hook.error').length, 1)
  })
})
