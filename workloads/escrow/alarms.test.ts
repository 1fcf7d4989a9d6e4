import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MemoryPresence } from '../../src/engine/memory-records.ts'
import type { TopicLag } from '../../src/engine/open.ts'
import type { Beat } from '../../src/engine/presence.ts'
import { Events, type JobFacts } from '../../src/events.ts'
import type { PendingLetters } from '../../src/observe/lag.ts'
import { TestClock } from '../../src/testing/test-clock.ts'
import { type Alarm, type AlarmRules, attachArrivalAlarms, evaluateAlarms } from './alarms.ts'
import { Watch, type WatchSources } from './watch.ts'

const rules: AlarmRules = {
  lagLimits: (topic) => (topic === 'escrow.commands' ? { warning: 100, critical: 500 } : null),
  isFinancial: (topic) => topic === 'escrow.commands.dlq',
}

interface Stage {
  readonly clock: TestClock
  readonly presence: MemoryPresence
  readonly watch: Watch
  lags: readonly TopicLag[]
  pending: readonly PendingLetters[]
  beat(given?: Partial<Beat>): Promise<void>
  alarms(given?: Partial<AlarmRules>): Promise<readonly string[]>
}

function stage(sources: Partial<WatchSources> = {}): Stage {
  const clock = new TestClock()
  const presence = new MemoryPresence(clock)
  const lags = async (): Promise<readonly TopicLag[]> => one.lags
  const pending = async (): Promise<readonly PendingLetters[]> => one.pending
  const watch = new Watch({ presence, lags, pending, clock, ...sources })
  const one: Stage = {
    clock,
    presence,
    watch,
    lags: [],
    pending: [],
    async beat(given = {}) {
      const said = { type: 'payout-executor', instance: 'payout-executor-1', status: 'RUNNING' as const }
      const times = { atMs: clock.nowMs(), lastJobAtMs: null, stoppingSinceMs: null }
      await presence.beat([{ ...said, ...times, lag: 0, ...given }], 30_000)
    },
    async alarms(given = {}) {
      const found = evaluateAlarms(await watch.read(), { ...rules, ...given })
      return found.map(({ alarm, severity }) => `${alarm} ${severity}`)
    },
  }
  return one
}

// D61 X156
test('a worker that went without a goodbye is missed after 60 s, for a day', async () => {
  const { clock, beat, alarms } = stage()
  await beat()
  await clock.advance('59s')
  assert.deepEqual(await alarms(), [])
  await clock.advance('2s')
  assert.deepEqual(await alarms(), ['WorkerHeartbeatMissing critical'])
  await clock.advance('20h')
  assert.deepEqual(await alarms(), ['WorkerHeartbeatMissing critical'])
  await clock.advance('4h')
  assert.deepEqual(await alarms(), [])
})

// X155 X156
test('a worker that said goodbye is not missed', async () => {
  const { clock, presence, beat, alarms } = stage()
  await beat()
  await presence.gone('payout-executor-1', ['payout-executor'])
  await clock.advance('61s')
  assert.deepEqual(await alarms(), [])
})

// X157
test('a type of which nobody was ever heard is absent, where it is expected', async () => {
  const { beat, alarms } = stage()
  const expected = ['payout-executor', 'refund-executor']
  assert.deepEqual(await alarms({ expected }), ['WorkerAbsent critical', 'WorkerAbsent critical'])
  await beat()
  assert.deepEqual(await alarms({ expected }), ['WorkerAbsent critical'])
})

// D62 X158
test('a worker that lives and handles nothing for 5 min is stuck if records wait', async () => {
  const { clock, beat, alarms } = stage()
  const lastJobAtMs = clock.nowMs()
  await clock.advance('300s')
  await beat({ lastJobAtMs, lag: 1 })
  assert.deepEqual(await alarms(), [])
  await clock.advance('1s')
  await beat({ lastJobAtMs, lag: 1 })
  assert.deepEqual(await alarms(), ['WorkerStuckProcessing warning'])
  await beat({ lastJobAtMs, lag: 0 })
  assert.deepEqual(await alarms(), [])
  await beat({ lastJobAtMs, lag: null })
  assert.deepEqual(await alarms(), [])
})

// D62
test('one that has never handled a record is stuck 5 min after it was met', async () => {
  const { clock, beat, alarms } = stage()
  await beat({ lag: 3 })
  assert.deepEqual(await alarms(), [])
  await clock.advance('301s')
  await beat({ lag: 3 })
  assert.deepEqual(await alarms(), ['WorkerStuckProcessing warning'])
})

// X152
test('a worker that holds a partition for a retry is not stuck', async () => {
  const { clock, beat, alarms } = stage({ retrying: (worker, instance) => (instance === `${worker}-1` ? 1 : 0) })
  await beat({ lag: 3 })
  await alarms()
  await clock.advance('301s')
  await beat({ lag: 3 })
  assert.deepEqual(await alarms(), [])
  await beat({ lag: 3, instance: 'payout-executor-2', lastJobAtMs: 0 })
  assert.deepEqual(await alarms(), ['WorkerStuckProcessing warning'])
})

// D13 X155
test('a worker that stops for more than 2 min is overdue', async () => {
  const { clock, beat, alarms } = stage()
  const stoppingSinceMs = clock.nowMs()
  await clock.advance('121s')
  await beat({ status: 'SHUTTING_DOWN', stoppingSinceMs, lag: 5, lastJobAtMs: 0 })
  assert.deepEqual(await alarms(), ['WorkerShutdownOverdue warning'])
})

// D65 X159
test('lag above the limits of its topic is an alarm for each group', async () => {
  const one = stage()
  const behind = (lag: number) => {
    one.lags = [
      { group: 'payout-executor', topic: 'escrow.commands', lag },
      { group: 'audit', topic: 'other', lag: 1_000_000 },
    ]
    return one.alarms()
  }
  assert.deepEqual(await behind(100), [])
  assert.deepEqual(await behind(101), ['ConsumerLagWarning warning'])
  assert.deepEqual(await behind(500), ['ConsumerLagWarning warning'])
  assert.deepEqual(await behind(501), ['ConsumerLagCritical critical'])
})

// D63 D64 X160
test('letters that wait are an alarm until they are resolved', async () => {
  const one = stage()
  one.pending = [
    { topic: 'escrow.commands.dlq', count: 1 },
    { topic: 'delivery.commands.dlq', count: 2 },
    { topic: 'deal.events.dlq', count: 0 },
  ]
  assert.deepEqual(await one.alarms(), ['DLQFinancial critical', 'DLQNonFinancial warning'])
  one.pending = [{ topic: 'escrow.commands.dlq', count: 0 }]
  assert.deepEqual(await one.alarms(), [])
})

// X170
test('an unreachable presence raises one alarm and hides no other', async () => {
  const away = () => Promise.reject(new Error('Redis is away'))
  const one = stage({ presence: { list: away, seen: away } })
  one.pending = [{ topic: 'escrow.commands.dlq', count: 1 }]
  const expected = ['payout-executor', 'refund-executor']
  assert.deepEqual(await one.alarms({ expected }), ['WorkerPresenceUnreachable critical', 'DLQFinancial critical'])
})

test('a source that hangs is given up after a second', async () => {
  const one = stage({ lags: () => new Promise(() => {}) })
  const reading = one.watch.read()
  await one.clock.advance('1s')
  const { lags, workers } = await reading
  assert.equal(lags.ok, false)
  assert.equal(workers.ok, true)
})

const facts: JobFacts = {
  id: 'j1',
  type: 'delivery.commands',
  priority: 5,
  attempts: 4,
  tenant: null,
  runAtMs: 0,
  createdAtMs: 0,
}

// D46 D47
test('a letter is an alarm as it arrives: critical where money is at stake, a warning elsewhere', () => {
  const events = new Events()
  const sent: Alarm[] = []
  const dlqTopicOf = (type: string) => (type === 'local' ? null : `${type}.dlq`)
  const detach = attachArrivalAlarms(events, {
    dlqTopicOf,
    isFinancial: rules.isFinancial,
    send: (one) => sent.push(one),
  })
  const error = { name: 'Failed', code: null, message: 'no', stack: null }
  const die = (type: string) =>
    events.emit('lease.reaped', { job: { ...facts, type }, attempt: 4, worker: 'w', outcome: { kind: 'dead', error } })
  die('delivery.commands')
  die('escrow.commands')
  die('local')
  events.emit('job.settled', {
    ...{ job: facts, attempt: 1, worker: 'w', durationMs: 1, started: true },
    outcome: { kind: 'retry', delayMs: 1, error },
  })
  assert.deepEqual(
    sent.map(({ alarm, severity, labels }) => [alarm, severity, labels.topic]),
    [
      ['DLQNonFinancial', 'warning', 'delivery.commands.dlq'],
      ['DLQFinancial', 'critical', 'escrow.commands.dlq'],
    ],
  )
  detach()
  die('escrow.commands')
  assert.equal(sent.length, 2)
})
