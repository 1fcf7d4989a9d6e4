import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Engine } from '../../../src/engine/engine.ts'
import { MemoryPresence } from '../../../src/engine/memory-records.ts'
import { NonRetryable } from '../../../src/errors.ts'
import { defineJob } from '../../../src/job/definition.ts'
import { type Alerting, type AlertingOptions, startAlerting } from '../../../src/observe/alerts/alerting.ts'
import { healthRules } from '../../../src/observe/alerts/health-rules.ts'
import { attachPresence } from '../../../src/observe/presence.ts'
import { drain } from '../../../src/testing/drain.ts'
import { openForTest, type TestMill } from '../../../src/testing/open-for-test.ts'
import { conversationRules } from './alert-rules.ts'

const doomed = defineJob({
  type: 'doomed',
  run: () => {
    throw new NonRetryable('never')
  },
})
const good = defineJob({ type: 'good', run: () => 1 })
const rules = [...healthRules(), ...conversationRules()]
const firing = (alerting: Alerting) =>
  alerting.current().flatMap(({ rule, status }) => (status === 'firing' ? [rule] : []))

async function look(t: TestMill, alerting: Alerting): Promise<readonly string[]> {
  await t.clock.advance('5m')
  return firing(alerting)
}

// B130 B152 B153 B155 B156 X011 X089
test('over a mill: every five minutes, over an hour', async () => {
  await using t = await openForTest()
  const alerting = startAlerting(t.mill, { rules, health: { minWorkers: 0 }, clock: t.clock })
  assert.deepEqual(await look(t, alerting), [])
  await t.mill.enqueueMany(doomed, Array(11).fill(null))
  await t.mill.enqueueMany(good, Array(10).fill(null))
  await drain(t.mill, [doomed, good])
  await t.mill.enqueueMany(good, Array(1_001).fill(null), { delay: '1d' })
  await t.clock.advance('299s')
  assert.deepEqual(firing(alerting), [], 'not before five minutes have passed')
  await t.clock.advance('1s')
  assert.deepEqual(firing(alerting).toSorted(), ['DeadLetters', 'dead_letter_count', 'queue_depth', 'success_rate'])
  await t.clock.advance('55m')
  assert.ok(firing(alerting).includes('success_rate'))
  await t.clock.advance('10m')
  assert.ok(!firing(alerting).includes('success_rate'), 'after an hour those ends are over')
  await alerting.stop()
  await t.clock.advance('1h')
  assert.equal(t.clock.waiting, 0)
})

// B154 X086
test('over a mill: a job that is due for more than an hour', async () => {
  await using t = await openForTest()
  const alerting = startAlerting(t.mill, { rules, health: { minWorkers: 0 }, clock: t.clock })
  await t.mill.enqueue(good, null, { delay: '10m' })
  await t.clock.advance('70m')
  assert.deepEqual(firing(alerting), [], 'an hour is not more than an hour')
  await t.clock.advance('5m')
  assert.deepEqual(firing(alerting).toSorted(), ['JobsWaitTooLong', 'queue_age'])
  await drain(t.mill, [good])
  assert.deepEqual(await look(t, alerting), [])
  await alerting.stop()
})

// A160 X070
test('over a mill: no worker, and an engine that hangs', async () => {
  await using t = await openForTest()
  const presence = new MemoryPresence(t.clock)
  const detach = attachPresence(t.mill, { presence, clock: t.clock })
  const alerting = startAlerting(t.mill, { rules, health: { presence }, every: '1m', clock: t.clock })
  await t.clock.advance('1m')
  assert.deepEqual(firing(alerting), [], 'a minute may pass')
  await t.clock.advance('1m')
  assert.deepEqual(firing(alerting), ['NoWorkers'])
  const running = await t.mill.work([good])
  await t.clock.advance('1m')
  assert.deepEqual(firing(alerting), [])
  await running.stop()
  await alerting.stop()
  await detach()

  const hung = Object.assign(Object.create(t.mill.engine), { ping: () => new Promise(() => {}) })
  const mill = { events: t.mill.events, engine: hung }
  const other = startAlerting(mill, { rules, health: { minWorkers: 0 }, clock: t.clock })
  const looked = other.evaluate()
  await t.clock.advance('1s')
  await looked
  assert.deepEqual(firing(other), ['EngineDown'])
  await other.stop()
})

test('workers are found where the health is told to look, else in the engine; where nobody looks none is missed', async () => {
  await using t = await openForTest()
  await t.mill.work([good])
  await t.clock.advance('1s')
  const noWorkers = async (options: Pick<AlertingOptions, 'health'>, engine: Engine = t.mill.engine) => {
    const alerting = startAlerting(
      { events: t.mill.events, engine },
      { ...options, rules, every: '1m', clock: t.clock },
    )
    await t.clock.advance('2m')
    const found = firing(alerting).includes('NoWorkers')
    await alerting.stop()
    return found
  }
  assert.equal(await noWorkers({}), false)
  assert.equal(await noWorkers({ health: { presence: new MemoryPresence(t.clock) } }), true)
  const without: Engine = Object.create(t.mill.engine, { presence: { value: undefined } })
  assert.equal(await noWorkers({}, without), false)
})
