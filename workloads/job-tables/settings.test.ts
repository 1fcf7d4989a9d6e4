import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readTableSettings } from './settings.ts'

// E45 E46 E47 E48 E49 E50 E51 X178
test('an empty environment gives the defaults', () => {
  assert.deepEqual(readTableSettings({}), {
    intervalSec: 60,
    maxAttempts: 3,
    leaseSec: 300,
    heartbeatSec: 15,
    backoffBaseMs: 1_000,
    backoffMaxMs: 60_000,
    slaFactors: { clip: 6, asr: 12, burnin: 8 },
  })
})

// E45 E46 E47 E48 E49 E50 E51
test('each figure has its variable', () => {
  const settings = readTableSettings({
    REAPER_INTERVAL_SEC: '5',
    JOB_MAX_ATTEMPTS: '4',
    DEFAULT_LEASE_SEC: '30',
    HEARTBEAT_SEC: '2.5',
    CLIP_SLA_FACTOR: '1.5',
    ASR_SLA_FACTOR: '2',
    BURNIN_SLA_FACTOR: '3',
  })
  assert.deepEqual(settings, {
    intervalSec: 5,
    maxAttempts: 4,
    leaseSec: 30,
    heartbeatSec: 2.5,
    backoffBaseMs: 1_000,
    backoffMaxMs: 60_000,
    slaFactors: { clip: 1.5, asr: 2, burnin: 3 },
  })
})

// E52
test('the variables of an existing queue are the defaults where they are present', () => {
  const settings = readTableSettings({
    QUEUE_MAX_ATTEMPTS: '7',
    QUEUE_VISIBILITY_SEC: '45',
    QUEUE_RETRY_BACKOFF_MS_BASE: '250',
    QUEUE_RETRY_BACKOFF_MS_MAX: '9000',
  })
  const { maxAttempts, leaseSec, backoffBaseMs, backoffMaxMs } = settings
  assert.deepEqual([maxAttempts, leaseSec, backoffBaseMs, backoffMaxMs], [7, 45, 250, 9_000])
})

// E53 X177
test('JOB_* and DEFAULT_LEASE_SEC win over QUEUE_*', () => {
  const settings = readTableSettings({
    QUEUE_MAX_ATTEMPTS: '7',
    JOB_MAX_ATTEMPTS: '4',
    QUEUE_VISIBILITY_SEC: '45',
    DEFAULT_LEASE_SEC: '90',
    QUEUE_RETRY_BACKOFF_MS_BASE: '250',
    JOB_RETRY_BACKOFF_MS_BASE: '500',
    QUEUE_RETRY_BACKOFF_MS_MAX: '9000',
    JOB_RETRY_BACKOFF_MS_MAX: '8000',
  })
  const { maxAttempts, leaseSec, backoffBaseMs, backoffMaxMs } = settings
  assert.deepEqual([maxAttempts, leaseSec, backoffBaseMs, backoffMaxMs], [4, 90, 500, 8_000])
})

test('an empty variable is one that is not set', () => {
  assert.equal(readTableSettings({ JOB_MAX_ATTEMPTS: ' ', QUEUE_MAX_ATTEMPTS: '7' }).maxAttempts, 7)
})

test('what cannot be meant is refused by its name', () => {
  const refusals: readonly (readonly [string, string])[] = [
    ['REAPER_INTERVAL_SEC', '0'],
    ['REAPER_INTERVAL_SEC', '-5'],
    ['REAPER_INTERVAL_SEC', '1m'],
    ['JOB_MAX_ATTEMPTS', '2.5'],
    ['JOB_MAX_ATTEMPTS', '0'],
    ['JOB_MAX_ATTEMPTS', '2147483648'],
    ['DEFAULT_LEASE_SEC', 'Infinity'],
    ['HEARTBEAT_SEC', 'NaN'],
    ['CLIP_SLA_FACTOR', '0'],
    ['QUEUE_RETRY_BACKOFF_MS_BASE', '0x10'],
  ]
  for (const [name, value] of refusals) {
    assert.throws(
      () => readTableSettings({ [name]: value }),
      (error: Error & { code?: string }) => error.code === 'ERR_OPTION_INVALID' && error.message.includes(name),
      `${name}=${value}`,
    )
  }
  assert.throws(() => readTableSettings({ QUEUE_RETRY_BACKOFF_MS_BASE: '70000' }), /above its maximum/)
})
