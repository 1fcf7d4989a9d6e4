/** The Prometheus rules of documents A, B and E, judged by Prometheus' own tool. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { alertsIn, check as checkRules, type Expectation, run, type Series, series, skip } from './promtool.ts'

const RULES = fileURLToPath(new URL('../../examples/monitoring/prometheus/millrace.rules.yml', import.meta.url))
const check = (input: readonly Series[], expected: readonly Expectation[], intervalSeconds?: number) =>
  checkRules(RULES, input, expected, intervalSeconds)

const engine = 'sqlite'
/** Two processes say what they know. */
const two = (name: string, labels: Readonly<Record<string, string>>, one: number | string, other = one) => [
  series(name, { engine, instance: 'a', ...labels }, one),
  series(name, { engine, instance: 'b', ...labels }, other),
]

test('the file of rules is valid, and has every alert with its severity', { skip }, () => {
  assert.equal(run('check', 'rules', RULES), '')
  assert.deepEqual(alertsIn(RULES), [
    'MillraceEngineDown critical',
    'MillraceNoWorkers critical',
    'MillraceWorkersNotScraped warning',
    'MillraceDeadLetters warning',
    'MillraceDeadLettersTooMany error',
    'MillraceCriticalDeadLetters error',
    'MillraceQueueDepth warning',
    'MillraceQueueAge warning',
    'MillraceSuccessRate error',
    'MillraceDeadLetterCount error',
    'MillraceLatencyP95 warning',
    'MillraceReaperSilent warning',
    'ReaperQueueAge warning',
    'ReaperFailures warning',
  ])
})

// A157
test('the engine is down when no process has reached it for a minute', { skip }, async () => {
  const alert = 'MillraceEngineDown'
  await check(two('millrace_engine_up', {}, 0), [
    { alert, atSeconds: 59, firing: [] },
    { alert, atSeconds: 61, firing: [{ engine }], severity: 'critical' },
  ])
  await check(two('millrace_engine_up', {}, 0, 1), [{ alert, atSeconds: 61, firing: [] }])
})

// A160
test('there are no workers when no process has one for a minute', { skip }, async () => {
  const alert = 'MillraceNoWorkers'
  await check(two('millrace_worker_instances', {}, 0), [
    { alert, atSeconds: 59, firing: [] },
    { alert, atSeconds: 61, firing: [{ engine }], severity: 'critical' },
  ])
  await check(two('millrace_worker_instances', {}, 0, 1), [{ alert, atSeconds: 61, firing: [] }])
})

test('workers that nobody scrapes are told of, and those of one store do not stand for those of another', {
  skip,
}, async () => {
  const alert = 'MillraceWorkersNotScraped'
  const on = (store: string, instances: number) => [
    series('millrace_worker_instances', { engine, store, instance: 'serve' }, instances),
  ]
  const scraped = series('millrace_jobs_started_total', { engine, store: 'shop', type: 'mail', instance: 'work' }, 0)
  await check(
    [...on('shop', 2), ...on('bank', 2), ...on('idle', 0), scraped],
    [
      { alert, atSeconds: 299, firing: [] },
      { alert, atSeconds: 301, firing: [{ engine, store: 'bank' }], severity: 'warning' },
      { alert: 'MillraceNoWorkers', atSeconds: 301, firing: [{ engine, store: 'idle' }], severity: 'critical' },
    ],
  )
})

// A161 A162 A163 A168 B156 X011
test('dead letters: any, more than ten, a hundred, and those of critical types', { skip }, async () => {
  const letters = (count: number, type = 'mail') => two('millrace_dead_letters', { type }, count)
  const levels: readonly (readonly [number, readonly string[]])[] = [
    [0, []],
    [1, ['MillraceDeadLetters']],
    [10, ['MillraceDeadLetters']],
    [11, ['MillraceDeadLetters', 'MillraceDeadLetterCount']],
    [99, ['MillraceDeadLetters', 'MillraceDeadLetterCount']],
    [100, ['MillraceDeadLettersTooMany', 'MillraceDeadLetterCount']],
  ]
  const severities = {
    MillraceDeadLetters: 'warning',
    MillraceDeadLetterCount: 'error',
    MillraceDeadLettersTooMany: 'error',
  }
  for (const [count, names] of levels) {
    await check(
      letters(count),
      Object.entries(severities).map(([alert, severity]) => {
        const firing = names.includes(alert) ? [{ engine }] : []
        return { alert, atSeconds: 1, firing, severity }
      }),
    )
  }
  await check(
    [...letters(1, 'mail'), ...letters(0, 'audit-export'), ...letters(1, 'data-deletion')],
    [
      {
        alert: 'MillraceCriticalDeadLetters',
        atSeconds: 1,
        firing: [{ engine, type: 'data-deletion' }],
        severity: 'error',
      },
    ],
  )
})

// B153 X086
test('the queue is deep above 1000, over types and states, running jobs left out', { skip }, async () => {
  const alert = 'MillraceQueueDepth'
  const depth = (waiting: number) => [
    ...two('millrace_queue_depth', { type: 'a', state: 'waiting' }, waiting),
    ...two('millrace_queue_depth', { type: 'b', state: 'delayed' }, 400),
    ...two('millrace_queue_depth', { type: 'b', state: 'active' }, 5_000),
  ]
  await check(depth(600), [{ alert, atSeconds: 1, firing: [] }])
  await check(depth(601), [{ alert, atSeconds: 1, firing: [{ engine }], severity: 'warning' }])
})

// B154
test('the queue is old above an hour', { skip }, async () => {
  const alert = 'MillraceQueueAge'
  await check(two('millrace_queue_age_seconds', {}, 3_600), [{ alert, atSeconds: 1, firing: [] }])
  const firing = [{ engine }]
  await check(two('millrace_queue_age_seconds', {}, 3_601), [{ alert, atSeconds: 1, firing, severity: 'warning' }])
})

// B155 X090
test('the success rate is bad below 95 %, of at least 20 jobs in an hour', { skip }, async () => {
  const alert = 'MillraceSuccessRate'
  const ends = (completed: string, dead: string) => [
    ...two('millrace_jobs_completed_total', { type: 'a' }, completed),
    ...two('millrace_jobs_dead_total', { type: 'a' }, dead),
  ]
  const minutes = (each: number) => `0+${each}x120`
  const at = (firing: readonly Readonly<Record<string, string>>[]) => [
    { alert, atSeconds: 7_200, firing, severity: 'error' },
  ]
  await check(ends(minutes(95), minutes(5)), at([]), 60)
  await check(ends(minutes(94), minutes(6)), at([{ engine }]), 60)
  await check(ends('0x120', '0x60 0+0.1x59'), at([]), 60)
  await check(ends('0x120', '0x60 0+1x59'), at([{ engine }]), 60)
})

// B157 X087
test('latency is judged by type', { skip }, async () => {
  const alert = 'MillraceLatencyP95'
  /** All attempts of a type take between `above` and `upTo` seconds. */
  const runs = (type: string, above: number, upTo: number) =>
    ['0.1', '0.5', '1', '5', '10', '30', '60', '300', '+Inf'].flatMap((le) => {
      const isIn = le === '+Inf' || Number(le) >= upTo
      assert.ok(above < upTo)
      return two('millrace_job_duration_seconds_bucket', { type, le }, isIn ? '0+6x120' : '0x120')
    })
  await check(
    [
      ...runs('mail', 5, 10),
      ...runs('slow', 10, 30),
      ...runs('sanitize_ai_validation', 1, 5),
      ...runs('extract_learning', 1, 5),
      ...runs('mine_upload', 10, 30),
      ...two('millrace_latency_p95_seconds', { type: 'sanitize_ai_validation' }, 3),
    ],
    [
      {
        alert,
        atSeconds: 7_200,
        firing: ['slow', 'sanitize_ai_validation'].map((type) => ({ engine, type })),
        severity: 'warning',
      },
    ],
    60,
  )
})

// E54 E55 E56 X190
test('the reaper: silent for ten minutes, rows that wait for an hour, rows that failed', { skip }, async () => {
  const passes = (values: string) => two('millrace_reaper_pass_duration_seconds_count', {}, values)
  const alert = 'MillraceReaperSilent'
  await check(passes('0+2x60'), [{ alert, atSeconds: 3_600, firing: [] }], 60)
  await check(passes('5x60'), [{ alert, atSeconds: 3_600, firing: [{ engine }], severity: 'warning' }], 60)
  const age = (value: number) => [series('reaper_queue_age_seconds', { table: 'jobs' }, value)]
  const old = { alert: 'ReaperQueueAge', atSeconds: 1, severity: 'warning' }
  await check(age(3_600), [{ ...old, firing: [] }])
  await check(age(3_601), [{ ...old, firing: [{ table: 'jobs' }] }])
  const failed = (values: string) => [series('reaper_failures_total', { table: 'jobs', stage: 'clip' }, values)]
  const some = { alert: 'ReaperFailures', atSeconds: 3_600, severity: 'warning' }
  await check(failed('3x60'), [{ ...some, firing: [] }], 60)
  await check(failed('3x30 4x30'), [{ ...some, firing: [{ table: 'jobs', stage: 'clip' }] }], 60)
})
