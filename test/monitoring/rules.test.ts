/** The Prometheus rules of the escrow workers, judged by Prometheus' own tool. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { WATCH_METRIC_NAMES } from '../../workloads/escrow/metrics.ts'
import { ESCROW_TOPICS, ESCROW_WORKERS } from '../../workloads/escrow/topology.ts'
import { alertsIn, check as checkRules, type Expectation, run, type Series, series, skip } from './promtool.ts'

const RULES = fileURLToPath(new URL('../../examples/monitoring/prometheus/escrow.rules.yml', import.meta.url))
const check = (input: readonly Series[], expected: readonly Expectation[]) => checkRules(RULES, input, expected)

// D61..D65 X159
test('the file of rules is valid, and has every alert with its severity', { skip }, () => {
  assert.equal(run('check', 'rules', RULES), '')
  assert.deepEqual(alertsIn(RULES), [
    'WorkerHeartbeatMissing critical',
    'WorkerAbsent critical',
    'WorkerPresenceUnreachable critical',
    'WorkerStuckProcessing warning',
    'WorkerShutdownOverdue warning',
    'DLQFinancial critical',
    'DLQNonFinancial warning',
    'ConsumerLagCritical critical',
    'ConsumerLagWarning warning',
  ])
})

test('the rules ask only for metrics that there are', () => {
  const expressions = readFileSync(RULES, 'utf8').replaceAll(/#.*|summary:.*|by \([^)]*\)/g, '')
  const asked = new Set(expressions.match(/\b(?:worker|kafka)_[a-z_]+(?=[{)])/g))
  const known = new Set<string>(Object.values(WATCH_METRIC_NAMES))
  assert.ok(asked.size >= 7, [...asked].join(' '))
  assert.deepEqual(
    [...asked].filter((name) => !known.has(name)),
    [],
  )
})

const one = { worker: 'payout-executor', worker_instance: 'payout-executor-1' }

// D61
test('a heartbeat is missing above 60 s', { skip }, async () => {
  const alert = 'WorkerHeartbeatMissing'
  await check(
    [series('worker_heartbeat_timestamp', one, 0)],
    [
      { alert, atSeconds: 60, firing: [] },
      { alert, atSeconds: 61, firing: [one], severity: 'critical' },
    ],
  )
})

// D62 X152 X158
test('a worker is stuck above 5 min with a lag, unless it retries, stops or is missing', { skip }, async () => {
  const alert = 'WorkerStuckProcessing'
  const worker = (name: string, lag: number, given: Readonly<Record<string, number>> = {}) => {
    const labels = { worker: 'payout-executor', worker_instance: name }
    const values = { heartbeat_timestamp: 290, last_message_timestamp: 0, consumer_lag: lag, retrying: 0, ...given }
    return Object.entries(values).map(([metric, value]) => series(`worker_${metric}`, labels, value))
  }
  const input = [
    ...worker('stuck', 1),
    ...worker('idle', 0),
    ...worker('retrying', 1, { retrying: 1 }),
    ...worker('stopping', 1, { stopping_timestamp: 200 }),
    ...worker('missing', 1, { heartbeat_timestamp: 0 }),
    ...worker('busy', 1, { last_message_timestamp: 2 }),
  ]
  const stuck = { worker: 'payout-executor', worker_instance: 'stuck' }
  await check(input, [
    { alert, atSeconds: 300, firing: [] },
    { alert, atSeconds: 301, firing: [stuck], severity: 'warning' },
  ])
})

// D13
test('stopping is overdue above 2 min', { skip }, async () => {
  const alert = 'WorkerShutdownOverdue'
  await check(
    [series('worker_stopping_timestamp', one, 0)],
    [
      { alert, atSeconds: 120, firing: [] },
      { alert, atSeconds: 121, firing: [one], severity: 'warning' },
    ],
  )
})

// D63 D64 X160
test('letters that wait are critical in the financial topic and a warning in the others', { skip }, async () => {
  const letters = (topic: string, count: number) => series('worker_dlq_pending', { topic }, count)
  const ordinary = ESCROW_TOPICS.filter(({ isFinancial }) => !isFinancial).map(({ dlq }) => dlq)
  assert.equal(ordinary.length, 5)
  const [empty = '', ...full] = ordinary
  await check(
    [letters('escrow.commands.dlq', 1), letters(empty, 0), ...full.map((topic) => letters(topic, 2)), letters('x', 3)],
    [
      { alert: 'DLQFinancial', atSeconds: 1, firing: [{ topic: 'escrow.commands.dlq' }], severity: 'critical' },
      { alert: 'DLQNonFinancial', atSeconds: 1, firing: full.map((topic) => ({ topic })), severity: 'warning' },
    ],
  )
})

// D14..D19 D65 X159
test('every topic has its limits: a warning above the first, critical above the second', { skip }, async () => {
  const lags = ESCROW_TOPICS.flatMap(({ topic, lag: { warning, critical } }) =>
    [warning, warning + 1, critical, critical + 1].map((lag, index) => ({ topic, group: `at-${index}`, lag })),
  )
  const groups = (...names: readonly string[]) =>
    lags.filter(({ group }) => names.includes(group)).map(({ topic, group }) => ({ topic, group }))
  await check(
    // Two processes watch and say the same.
    lags.flatMap(({ topic, group, lag }) =>
      ['a', 'b'].map((instance) => series('kafka_consumer_lag', { topic, group, instance }, lag)),
    ),
    [
      { alert: 'ConsumerLagWarning', atSeconds: 1, firing: groups('at-1', 'at-2'), severity: 'warning' },
      { alert: 'ConsumerLagCritical', atSeconds: 1, firing: groups('at-3'), severity: 'critical' },
    ],
  )
})

// X157 X170
test('a worker that nobody knows is absent, but not while heartbeats cannot be read', { skip }, async () => {
  const names = ESCROW_WORKERS.map(({ worker }) => worker)
  const [known = '', ...others] = names
  const heartbeat = series('worker_heartbeat_timestamp', { worker: known, worker_instance: 'x' }, 0)
  const alert = 'WorkerAbsent'
  const up = (value: number) => series('worker_presence_up', {}, value)
  await check(
    [heartbeat, up(1)],
    [
      { alert, atSeconds: 30, firing: [] },
      { alert, atSeconds: 61, firing: others.map((worker) => ({ worker })), severity: 'critical' },
      { alert: 'WorkerPresenceUnreachable', atSeconds: 61, firing: [] },
    ],
  )
  await check(
    [up(0)],
    [
      { alert, atSeconds: 61, firing: [] },
      { alert: 'WorkerPresenceUnreachable', atSeconds: 61, firing: [{}], severity: 'critical' },
    ],
  )
  const none = names.map((worker) => ({ worker }))
  await check([], [{ alert, atSeconds: 61, firing: none, severity: 'critical' }])
})

test('stores do not hide each other: heartbeats, dead letters and lags of each are judged by themselves', {
  skip,
}, async () => {
  const at = (store: string) => ({ store, engine: 'kafka' })
  const topic = 'escrow.commands.dlq'
  const lag = { group: 'payout-executor', topic: 'escrow.commands' }
  await check(
    [
      ...ESCROW_WORKERS.map(({ worker }) => series('worker_heartbeat_timestamp', { ...at('a'), worker }, 100)),
      series('worker_presence_up', { engine: 'sqlite' }, 1),
      series('worker_presence_up', at('a'), 1),
      series('worker_presence_up', at('b'), 0),
      series('worker_heartbeat_timestamp', { ...at('c'), ...one }, 0),
      ...['a', 'b'].map((store) => series('worker_dlq_pending', { ...at(store), topic }, 1)),
      series('kafka_consumer_lag', { ...at('a'), ...lag }, 101),
      series('kafka_consumer_lag', { ...at('b'), ...lag }, 501),
    ],
    [
      { alert: 'WorkerHeartbeatMissing', atSeconds: 90, firing: [{ ...at('c'), ...one }], severity: 'critical' },
      { alert: 'WorkerPresenceUnreachable', atSeconds: 90, firing: [at('b')], severity: 'critical' },
      { alert: 'WorkerAbsent', atSeconds: 90, firing: [] },
      {
        alert: 'DLQFinancial',
        atSeconds: 90,
        firing: ['a', 'b'].map((store) => ({ ...at(store), topic })),
        severity: 'critical',
      },
      { alert: 'ConsumerLagWarning', atSeconds: 90, firing: [{ ...at('a'), ...lag }], severity: 'warning' },
      { alert: 'ConsumerLagCritical', atSeconds: 90, firing: [{ ...at('b'), ...lag }], severity: 'critical' },
    ],
  )
})
