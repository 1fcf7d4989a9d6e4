import assert from 'node:assert/strict'
import { test } from 'node:test'
import { defineJob } from '../../src/job/definition.ts'
import { logSink, startAlerting } from '../../src/observe/index.ts'
import { capturingLog, type LogLine } from '../../src/testing/capture.ts'
import { openForTest } from '../../src/testing/open-for-test.ts'
import { watchRules } from './alarms.ts'
import { tellArrivals } from './arrivals.ts'
import { Watch } from './watch.ts'

const isFinancial = (topic: string): boolean => topic === 'escrow.commands.dlq'
const none = async () => []

interface Stage extends AsyncDisposable {
  readonly lines: LogLine[]
  readonly firing: () => readonly string[]
  /** Resolves when the letter was told of. */
  die(): Promise<void>
}

/** `pending`: what a look at the dead letters finds. */
async function stage(pending: () => number | Promise<never>): Promise<Stage> {
  const t = await openForTest()
  const lines: LogLine[] = []
  const log = capturingLog(lines)
  const watch = new Watch({
    presence: { list: none, seen: none },
    lags: none,
    pending: async () => [{ topic: 'escrow.commands.dlq', count: await pending() }],
    clock: t.clock,
  })
  const rules = { lagLimits: () => null, isFinancial }
  const alerting = tellArrivals(
    startAlerting(t.mill, { rules: watchRules(rules), watch, sinks: [logSink(log)], every: '1h', clock: t.clock }),
    { ...rules, events: t.mill.events, log, dlqTopicOf: (type) => `${type}.dlq` },
  )
  const job = defineJob({ type: 'escrow.commands', attempts: 1, run: () => Promise.reject(new Error('no')) })
  await t.mill.work([job])
  return {
    lines,
    firing: () => alerting.current().flatMap(({ status, rule }) => (status === 'firing' ? [rule] : [])),
    async die() {
      const before = lines.length
      await t.mill.enqueue(job, null)
      while (lines.length === before) await t.clock.advance(1)
    },
    async [Symbol.asyncDispose]() {
      await alerting.stop()
      await t.close()
    },
  }
}

// D47
test('a dead letter raises its alert at once, and further ones are told of while it fires', async () => {
  let count = 0
  await using s = await stage(() => count)
  count = 1
  await s.die()
  assert.deepEqual(s.firing(), ['DLQFinancial'])
  assert.match(s.lines[0]?.text ?? '', /^Alert DLQFinancial: escrow\.commands\.dlq has 1 unresolved/)
  count = 2
  await s.die()
  assert.match(s.lines[1]?.text ?? '', /^Alert DLQFinancial: job \S+ has become a dead letter/)
  assert.equal(s.lines[1]?.level, 'error')
  assert.equal(s.lines.length, 2)
})

test('a dead letter is told of though the topics cannot be read', async () => {
  await using s = await stage(() => Promise.reject(new Error('the broker is gone')))
  await s.die()
  assert.deepEqual(s.firing(), [])
  assert.match(s.lines[0]?.text ?? '', /^Alert DLQFinancial: job \S+ has become a dead letter/)
})
