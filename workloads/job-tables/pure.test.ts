import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { isTransient } from './database.ts'
import { beatEveryMs } from './lease-renewer.ts'
import { type FoundRow, isExpired, whyNotClaimable, whyNotHeld } from './leases.ts'
import { CountedMetrics } from './reaper-report.ts'
import { deadlineMs, factorOf, requeueDelayMs } from './settings.ts'
import { qualified } from './shape.ts'

const FACTORS = { clip: 6, asr: 12, burnin: 8 }
const NOW_MS = 1_000_000

// E59 X178
test('the backoff doubles from its base up to its maximum', () => {
  const figures = { backoffBaseMs: 1_000, backoffMaxMs: 60_000 }
  const delays = [1, 2, 3, 4, 5, 6, 7, 8, 1_000].map((attempt) => requeueDelayMs(attempt, figures))
  assert.deepEqual(delays, [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000, 60_000])
  assert.equal(requeueDelayMs(0, figures), 1_000)
  assert.equal(requeueDelayMs(5, { backoffBaseMs: 0, backoffMaxMs: 60_000 }), 0)
})

describe('lease expiry', () => {
  const held: FoundRow = {
    table: 'jobs',
    id: '1',
    status: 'processing',
    lockedBy: 'worker-1',
    attempt: 2,
    stage: null,
    expectedDurationMs: null,
    startedAtMs: NOW_MS - 5_000,
    expiresAtMs: NOW_MS,
    dueAtMs: null,
    nowMs: NOW_MS,
  }
  const holder = { workerId: 'worker-1', attempt: 2 }
  const codeOf = (row: FoundRow | null, by = holder): string => whyNotHeld('jobs', '1', row, by, FACTORS).code

  // E58
  test('a lease has ended when its time is past, not at the moment itself', () => {
    assert.equal(isExpired(NOW_MS, NOW_MS), false)
    assert.equal(isExpired(NOW_MS - 1, NOW_MS), true)
    assert.equal(isExpired(NOW_MS + 1, NOW_MS), false)
  })

  // E58 X171 X179 X185
  test('a refused holder hears the reason that comes first', () => {
    assert.equal(codeOf(null), 'lease_lost')
    assert.equal(codeOf({ ...held, status: 'queued' }), 'lease_lost')
    assert.equal(codeOf({ ...held, lockedBy: 'worker-2' }), 'lease_lost')
    assert.equal(codeOf(held, { workerId: 'worker-1', attempt: 1 }), 'lease_lost')
    assert.equal(codeOf({ ...held, expiresAtMs: NOW_MS - 1 }), 'lease_expired')
    assert.equal(codeOf({ ...held, expiresAtMs: null }), 'lease_expired')
    const late = { ...held, stage: 'clip', expectedDurationMs: 100 }
    assert.equal(codeOf(late), 'deadline_passed')
    assert.match(whyNotHeld('jobs', '1', held, holder, FACTORS).error, /at the same time/)
  })

  // X191
  test('a refused claim says why', () => {
    const free = { ...held, status: 'queued' }
    const errorOf = (row: FoundRow | null): string => whyNotClaimable('jobs', '1', row).error
    assert.match(errorOf(null), /no row/)
    assert.match(errorOf(held), /is processing/)
    assert.match(errorOf({ ...free, dueAtMs: NOW_MS + 1 }), /is due at 1970-01-01T00:16:40.001Z/)
    assert.match(errorOf({ ...free, dueAtMs: NOW_MS }), /at the same time/)
    for (const row of [null, held, free]) assert.equal(whyNotClaimable('jobs', '1', row).code, 'not_claimable')
  })
})

// E48 E49 E50 X179
test('the factor comes from the stage, else from the table, else there is no deadline', () => {
  assert.equal(factorOf('jobs', 'clip', FACTORS), 6)
  assert.equal(factorOf('jobs', 'ASR', FACTORS), 12)
  for (const stage of ['burnin', 'burn-in', 'Burn_In']) assert.equal(factorOf('asr_jobs', stage, FACTORS), 8)
  assert.equal(factorOf('asr_jobs', 'upload', FACTORS), 12)
  assert.equal(factorOf('asr_jobs', null, FACTORS), 12)
  assert.equal(factorOf('jobs', 'upload', FACTORS), null)
  assert.equal(factorOf('jobs', null, FACTORS), null)
})

// X179
test('a deadline needs a start, an expected duration and a factor', () => {
  const job = { table: 'jobs', stage: 'clip', startedAtMs: 1_000, expectedDurationMs: 50 }
  assert.equal(deadlineMs(job, FACTORS), 1_300)
  assert.equal(deadlineMs({ ...job, expectedDurationMs: null }, FACTORS), null)
  assert.equal(deadlineMs({ ...job, startedAtMs: null }, FACTORS), null)
  assert.equal(deadlineMs({ ...job, stage: null }, FACTORS), null)
})

// E51 X006
test('three beats fit into a lease, whatever the heartbeat is set to', () => {
  assert.equal(beatEveryMs(300, 15), 15_000)
  assert.equal(beatEveryMs(30, 15), 10_000)
})

// E43 X187
test('errors that may pass are told from those that will not', () => {
  const withCode = (code: string): Error => Object.assign(new Error('failed'), { code })
  const passing = ['ECONNRESET', 'ECONNREFUSED', 'EPIPE', '08006', '57P01', '57P03', '40001', '40P01', '53300']
  for (const code of passing) assert.equal(isTransient(withCode(code)), true, code)
  for (const code of ['42P01', '42703', '23505', '28P01', '3D000', '42501', '22P02']) {
    assert.equal(isTransient(withCode(code)), false, code)
  }
  assert.equal(isTransient(new Error('Connection terminated unexpectedly')), true)
  assert.equal(isTransient(new AggregateError([withCode('ECONNREFUSED')])), true)
  assert.equal(isTransient(new Error('no')), false)
  assert.equal(isTransient('ECONNRESET'), false)
})

test('a name cannot become anything else in a statement', () => {
  assert.equal(qualified('jobs', null), '"jobs"')
  assert.equal(qualified('x"; drop table jobs; --', 'my schema'), '"my schema"."x""; drop table jobs; --"')
  for (const name of ['', 'a\0b', 'é'.repeat(32)]) assert.throws(() => qualified(name, null))
})

test('counts are kept by name and by every tag', () => {
  const metrics = new CountedMetrics()
  metrics.count('reaper.requeues', { table: 'jobs', stage: 'clip' })
  metrics.count('reaper.requeues', { table: 'jobs', stage: 'clip' })
  metrics.measure('reaper.scan_duration_ms', 7, { table: 'jobs' })
  assert.equal(metrics.total('reaper.requeues', { table: 'jobs', stage: 'clip' }), 2)
  assert.equal(metrics.total('reaper.requeues', { table: 'asr_jobs', stage: 'clip' }), 0)
  assert.equal(metrics.total('reaper.failures', { table: 'jobs', stage: 'clip' }), 0)
  assert.equal(metrics.latest('reaper.scan_duration_ms', { table: 'jobs' }), 7)
  assert.equal(metrics.latest('reaper.scan_duration_ms', { table: 'jobs', stage: 'clip' }), undefined)
})
