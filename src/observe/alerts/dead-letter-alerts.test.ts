import assert from 'node:assert/strict'
import { test } from 'node:test'
import { open } from '../../client/mill.ts'
import { NonRetryable } from '../../errors.ts'
import { type AnyJob, defineJob } from '../../job/definition.ts'
import { silentLog } from '../log.ts'
import type { Alerter, AlertMessage } from './dead-letter-alerts.ts'

/** Runs one job to its end and returns the alerts that were sent. */
async function alertsOf(job: AnyJob, alerter?: Alerter): Promise<AlertMessage[]> {
  const alerts: AlertMessage[] = []
  const mill = await open('memory:', { alerter: alerter ?? { send: (alert) => alerts.push(alert) } })
  const over = mill.events.next('job.settled', ({ outcome }) => outcome.kind !== 'retry')
  await mill.enqueue(job, null, { tenant: { orgId: 'acme' } })
  await mill.work([job])
  await over
  await mill.close()
  return alerts
}

const failing = {
  backoff: { kind: 'fixed', delay: 0 },
  run: () => Promise.reject(new Error('no such user ada@example.com')),
} as const

// A66 A67 B124 X037
test('a job that failed its last attempt raises exactly one alert', async () => {
  const alerts = await alertsOf(defineJob({ type: 'quota-check', attempts: 3, ...failing }))
  assert.equal(alerts.length, 1)
  const [alert] = alerts
  assert.equal(alert?.severity, 'warning')
  assert.equal(alert?.title, 'Worker quota-check final failure')
  assert.match(alert?.text ?? '', /^job \w{26} is a dead letter after 3 of 3 attempts: no such user \[email\]$/)
  assert.deepEqual(Object.keys(alert?.labels ?? {}), ['jobType', 'jobId', 'tenantId'])
  assert.equal(alert?.labels.tenantId, 'acme')
  assert.equal(alert?.metadata, undefined)
})

// A168 X038
test('a critical type raises one louder alert instead', async () => {
  const alerts = await alertsOf(defineJob({ type: 'data-deletion', critical: true, attempts: 1, ...failing }))
  assert.deepEqual(
    alerts.map(({ severityLabel, title }) => [severityLabel, title]),
    [['high', 'Critical job moved to dead letter: data-deletion']],
  )
  const [alert] = alerts
  const { jobId = '' } = alert?.labels ?? {}
  assert.equal(alert?.text, `job ${jobId} is a dead letter after 1 of 1 attempts: no such user [email]`)
  assert.deepEqual(alert?.metadata, { jobType: 'data-deletion', jobId, tenant: { orgId: 'acme' } })
})

// X037
test('a failure that is final at the first attempt raises one too', async () => {
  const job = defineJob({ type: 'parse', attempts: 5, run: () => Promise.reject(new NonRetryable('never')) })
  assert.equal((await alertsOf(job)).length, 1)
})

test('success raises none', async () => {
  assert.deepEqual(await alertsOf(defineJob({ type: 'fine', run: () => 1 })), [])
})

// X030
test('an alerter that fails is logged and the worker goes on', async () => {
  const errors: string[] = []
  const mill = await open('memory:', {
    alerter: { send: () => Promise.reject(new Error('pager down')) },
    log: { ...silentLog, error: (text) => errors.push(text) },
  })
  const bad = defineJob({ type: 'bad', attempts: 1, ...failing })
  const good = defineJob({ type: 'good', run: () => 'done' })
  await mill.work([bad, good])
  const dead = mill.events.next('job.settled', ({ outcome }) => outcome.kind === 'dead')
  await mill.enqueue(bad, null)
  await dead
  assert.equal(await mill.result(await mill.enqueue(good, null)), 'done')
  assert.ok(errors.includes('An alert could not be sent'))
  await mill.close()
})
