import assert from 'node:assert/strict'
import { test } from 'node:test'
import { defineJob, NonRetryable } from '../../../src/index.ts'
import type { AlertMessage } from '../../../src/observe/index.ts'
import { drain } from '../../../src/testing/drain.ts'
import { openForTest } from '../../../src/testing/open-for-test.ts'
import { MONITOR_EVERY_MS, monitorDeadLetters } from './dead-letter-monitor.ts'

const doomed = defineJob({
  type: 'doomed',
  run: () => {
    throw new NonRetryable('never')
  },
})

// B130 X089
test('more than ten dead letters raise an alert at the next look, and again only after an hour or a recovery', async () => {
  await using t = await openForTest()
  const alerts: AlertMessage[] = []
  const stop = monitorDeadLetters({
    engine: t.mill.engine,
    clock: t.clock,
    alerter: { send: (alert) => alerts.push(alert) },
  })
  const bury = async (count: number): Promise<void> => {
    await t.mill.enqueueMany(
      doomed,
      Array.from({ length: count }, () => null),
    )
    assert.equal((await drain(t.mill, [doomed])).dead, count)
  }

  await bury(10)
  await t.clock.advance(MONITOR_EVERY_MS)
  assert.deepEqual(alerts, [], 'ten are not more than ten')

  await bury(1)
  await t.clock.advance(MONITOR_EVERY_MS - 1)
  assert.equal(alerts.length, 0, 'not before five minutes have passed')
  await t.clock.advance(1)
  assert.partialDeepStrictEqual(alerts, [
    { severityLabel: 'high', labels: { metric: 'dead_letter_count', value: '11', threshold: '10' } },
  ])

  await t.clock.advance('59m')
  assert.equal(alerts.length, 1, 'the same trouble is not told at every look')
  await t.clock.advance('5m')
  assert.equal(alerts.length, 2, 'but it is not forgotten either')

  const letters = await t.mill.engine.deadLetters?.list({ limit: 5 })
  const ids = letters?.map(({ job }) => job.id) ?? []
  await t.mill.engine.deadLetters?.remove(ids, { who: 'ann', reason: 'seen' })
  await t.clock.advance(MONITOR_EVERY_MS)
  await bury(5)
  await t.clock.advance(MONITOR_EVERY_MS)
  assert.equal(alerts.length, 3, 'after a recovery it is news again')
  stop()
  await t.clock.advance('2h')
  assert.equal(alerts.length, 3)
})

test('a look or an alert that fails is logged, and the next look comes', async () => {
  await using t = await openForTest()
  await t.mill.enqueueMany(
    doomed,
    Array.from({ length: 11 }, () => null),
  )
  await drain(t.mill, [doomed])
  const errors: string[] = []
  let sends = 0
  const log = { debug: () => {}, info: () => {}, warn: () => {}, error: (text: string) => errors.push(text) }
  const send = (): void => {
    sends += 1
    throw new Error('the pager is away')
  }
  const stop = monitorDeadLetters({ engine: t.mill.engine, clock: t.clock, log, alerter: { send } })
  await t.clock.advance(MONITOR_EVERY_MS)
  await t.clock.advance('61m')
  assert.deepEqual([sends, errors.length], [2, 2])
  stop()
})
