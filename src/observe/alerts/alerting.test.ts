import assert from 'node:assert/strict'
import { test } from 'node:test'
import { breach, rigged, told } from '../../../test/fixtures/alerting.ts'
import type { Counts } from '../../engine/engine.ts'
import { listMarks } from '../../engine/history/marks.ts'
import { Events } from '../../events.ts'
import { capturingLog, type LogLine } from '../../testing/capture.ts'
import { openForTest } from '../../testing/open-for-test.ts'
import { attachStats } from '../stats/stats.ts'
import { startAlerting } from './alerting.ts'
import type { AlertNotice } from './evaluator.ts'

test('a mill tells of alerts as events, and sinks hear repetitions too', async () => {
  await using t = await openForTest()
  const { rule, says } = rigged()
  const heard: string[] = []
  const options = { rules: [rule], every: '1m', repeat: '3m', clock: t.clock } as const
  const sink = ({ status, repeated }: AlertNotice): void => void heard.push(repeated ? `still ${status}` : status)
  const alerting = startAlerting(t.mill, { ...options, sinks: [sink] })
  says(breach(9))
  await t.clock.advance('4m')
  says()
  await t.clock.advance('1m')
  await alerting.stop()
  assert.deepEqual(heard, ['firing', 'still firing', 'resolved'])
  const events = t.events.flatMap(({ name, event }) =>
    name === 'alert.firing' || name === 'alert.resolved' ? [[name, event.alert.rule, event.alert.value]] : [],
  )
  assert.deepEqual(events, [
    ['alert.firing', 'rigged', 9],
    ['alert.resolved', 'rigged', 9],
  ])
  says(breach(1))
  await t.clock.advance('1h')
  assert.equal(heard.length, 3, 'stopped is stopped')
})

test('alerts are marks of the history, once, if two processes evaluate the same rule', async () => {
  await using t = await openForTest()
  const { rule, says } = rigged()
  const [one, other] = [
    startAlerting(t.mill, { rules: [rule], clock: t.clock }),
    startAlerting(t.mill, { rules: [rule], clock: t.clock }),
  ]
  says(breach(9))
  for (const alerting of [one, other]) await alerting.evaluate()
  says()
  for (const alerting of [one, other]) await alerting.evaluate()
  await Promise.all([one.stop(), other.stop()])
  const { records } = t.mill.engine
  assert.ok(records !== undefined)
  const { marks, left } = await listMarks(records, 0)
  assert.deepEqual([marks.map(({ kind }) => kind).sort(), left], [['alert', 'resolved'], 0])
})

test('two looks at once are one, and rules of one name are refused', async () => {
  await using t = await openForTest()
  const { rule, says } = rigged()
  const alerting = startAlerting(t.mill, { rules: [rule], clock: t.clock })
  says(breach(1))
  const [one, other] = await Promise.all([alerting.evaluate(), alerting.evaluate()])
  assert.equal(one, other)
  assert.deepEqual(told(one), ['firing 1'])
  await alerting.stop()
  const refusal = { code: 'ERR_OPTION_INVALID' }
  assert.throws(() => startAlerting(t.mill, { rules: [rule, rule], clock: t.clock }), refusal)
  assert.throws(() => startAlerting(t.mill, { rules: [rule], every: 0, clock: t.clock }), refusal)
  assert.throws(() => startAlerting(t.mill, { rules: [rule], window: '2h', clock: t.clock }), refusal)
})

// X030
test('a sink that fails or hangs is logged, and neither other sinks nor the next look mind', async () => {
  await using t = await openForTest()
  const { rule, says } = rigged()
  const lines: LogLine[] = []
  const heard: string[] = []
  const sinks = [
    () => {
      throw new Error('the pager of ann@example.com is away')
    },
    () => new Promise(() => {}),
    ({ status }: AlertNotice) => heard.push(status),
  ]
  const alerting = startAlerting(t.mill, {
    rules: [rule],
    sinks,
    log: capturingLog(lines),
    every: '1m',
    clock: t.clock,
  })
  says(breach(1))
  await t.clock.advance('1m')
  says()
  await t.clock.advance('1m')
  assert.deepEqual(heard, ['firing', 'resolved'])
  const errors = lines.filter(({ text }) => text === 'An alert could not be sent')
  assert.deepEqual(
    errors.map(({ fields }) => fields.alert),
    ['rigged', 'rigged', 'rigged'],
  )
  assert.ok(!JSON.stringify(errors).includes('ann@example.com'))
  const stopped = alerting.stop()
  await t.clock.advance('15s')
  await stopped
})

test('stats that cannot be read are logged once, and again when that has changed', async () => {
  await using t = await openForTest()
  const lines: LogLine[] = []
  let isAway = true
  const counts = () => (isAway ? Promise.reject(new Error('gone')) : t.mill.counts())
  const mill = { events: t.mill.events, engine: Object.assign(Object.create(t.mill.engine), { counts }) }
  const { rule } = rigged()
  const alerting = startAlerting(mill, { rules: [rule], log: capturingLog(lines), clock: t.clock })
  for (const away of [true, true, false, true]) {
    isAway = away
    await alerting.evaluate()
  }
  await alerting.stop()
  assert.deepEqual(
    lines.map(({ text, fields }) => [text, fields.error]),
    [
      ['The stats cannot be read', 'gone'],
      ['The stats cannot be read', 'gone'],
    ],
  )
})

test('a look that is under way when it is stopped tells nothing, and is the last', async () => {
  await using t = await openForTest()
  const gate = Promise.withResolvers<Counts>()
  const mill = {
    events: t.mill.events,
    engine: Object.assign(Object.create(t.mill.engine), { counts: () => gate.promise }),
  }
  const { rule, says } = rigged()
  const heard: AlertNotice[] = []
  const alerting = startAlerting(mill, {
    rules: [rule],
    sinks: [(one) => heard.push(one)],
    every: '1m',
    clock: t.clock,
  })
  says(breach(1))
  await t.clock.advance('1m')
  const stopped = alerting.stop()
  gate.resolve({})
  await stopped
  await t.clock.advance('1h')
  assert.deepEqual(heard, [])
  assert.deepEqual(alerting.current(), [])
  assert.equal(t.clock.waiting, 0)
})

// X089
test('by default an alert is repeated after an hour; stats of its own are detached, those given are not', async () => {
  await using t = await openForTest()
  const events = new Events()
  const mill = { events, engine: t.mill.engine }
  const { rule, says } = rigged()
  const heard: string[] = []
  const sinks = [({ repeated }: AlertNotice) => heard.push(`${repeated} ${t.clock.monotonicMs() / 60_000}`)]
  const alerting = startAlerting(mill, { rules: [rule], sinks, clock: t.clock })
  says(breach(1))
  await t.clock.advance('70m')
  assert.deepEqual(heard, ['false 5', 'true 65'])
  assert.equal(events.hasListener('job.settled'), true)
  await alerting.stop()
  assert.equal(events.hasListener('job.settled'), false)
  const stats = attachStats(mill, { clock: t.clock })
  await startAlerting(mill, { rules: [], stats, clock: t.clock }).stop()
  assert.equal(events.hasListener('job.settled'), true)
})
