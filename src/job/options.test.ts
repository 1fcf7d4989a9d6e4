import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import { OptionError } from '../errors.ts'
import {
  ATTEMPTS_DEFAULT,
  ATTEMPTS_MAX,
  checkAttempts,
  checkDue,
  checkKey,
  checkPriority,
  checkTenant,
  checkTimeoutMs,
  contentKey,
  KEY_LENGTH_MAX,
  LEASE_DEFAULT_MS,
  PAYLOAD_BYTES_MAX_DEFAULT,
  PRIORITY_DEFAULT,
  storedOptions,
  TIMEOUT_DEFAULT_MS,
} from './options.ts'

const NOW_MS = Date.UTC(2026, 10, 15)

// A09 A40 B22 B30 B97 B118
test('the defaults are the documents’ figures', () => {
  assert.deepEqual(
    [PRIORITY_DEFAULT, ATTEMPTS_DEFAULT, TIMEOUT_DEFAULT_MS, LEASE_DEFAULT_MS, PAYLOAD_BYTES_MAX_DEFAULT],
    [5, 3, 300_000, 60_000, 1_048_576],
  )
})

// B23 X001
test('a priority is a whole number from 1 to 10', () => {
  for (const priority of [1, 5, 10]) assert.equal(checkPriority(priority), priority)
  for (const priority of [0, 11, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY]) {
    assert.throws(() => checkPriority(priority), /'priority' is .* give a whole number from 1 \(first\) to 10 \(last\)/)
  }
})

test('attempts is a whole number from 1', () => {
  for (const attempts of [1, 3, ATTEMPTS_MAX]) assert.equal(checkAttempts(attempts), attempts)
  for (const attempts of [0, -1, 2.5, ATTEMPTS_MAX + 1, Number.NaN, Number.POSITIVE_INFINITY]) {
    assert.throws(() => checkAttempts(attempts), OptionError, `${attempts}`)
  }
})

// B199
test('a key is 1 to 512 printable characters', () => {
  for (const key of ['a', 'upload-42', 'Straße 7', '🜁', 'x'.repeat(KEY_LENGTH_MAX)])
    assert.equal(checkKey(key, 'key'), key)
  for (const key of ['', 'x'.repeat(KEY_LENGTH_MAX + 1), 'a\u0000b', 'a\nb', '\u007f']) {
    assert.throws(() => checkKey(key, 'key'), /'key' must be 1 to 512 printable characters/)
  }
  assert.throws(() => checkKey('', 'latest'), /'latest' must be/)
})

// B199
test('a key with half a surrogate pair is refused: stored as UTF-8, two such keys would become one', () => {
  for (const key of ['a\ud800', 'a\ud801', '\udc00']) assert.throws(() => checkKey(key, 'key'), OptionError)
})

test('what is not text is no key', () => {
  for (const key of [undefined, null, 5, {}, ['a']]) {
    // @ts-expect-error the type forbids it; a caller without types can still do it
    assert.throws(() => checkKey(key, 'key'), OptionError, String(key))
  }
})

// A46
test('a tenant has an orgId and may have a workspaceId; nothing else is stored', () => {
  assert.deepEqual(checkTenant({ orgId: 'o' }), { orgId: 'o' })
  assert.deepEqual(checkTenant({ orgId: 'o', workspaceId: 'w' }), { orgId: 'o', workspaceId: 'w' })
  const wide = { orgId: 'o', password: 'p', cyclic: 1n }
  assert.deepEqual(checkTenant(wide), { orgId: 'o' })
  const wrong = [{}, null, { orgId: '' }, { workspaceId: 'w' }, { orgId: 5 }, { orgId: 'o', workspaceId: 5 }]
  for (const tenant of [...wrong, { orgId: 'x'.repeat(513) }]) {
    // @ts-expect-error a caller without types can give anything
    assert.throws(() => checkTenant(tenant), /'tenant' needs an 'orgId'/, JSON.stringify(tenant))
  }
})

// A39
test('a job is due after a delay or at a date, never both', () => {
  assert.deepEqual(checkDue({}, NOW_MS), { delayMs: 0, runAtMs: null })
  assert.deepEqual(checkDue({ delay: '10m' }, NOW_MS), { delayMs: 600_000, runAtMs: null })
  assert.deepEqual(checkDue({ at: new Date(NOW_MS) }, NOW_MS), { delayMs: 0, runAtMs: NOW_MS })
  assert.throws(() => checkDue({ delay: 5, at: new Date(NOW_MS) }, NOW_MS), /'delay' and 'at' contradict each other/)
})

test('a due time outside the calendar is refused', () => {
  for (const at of [new Date(Number.NaN), new Date(-1), new Date(Date.UTC(10_000, 0, 1))]) {
    assert.throws(() => checkDue({ at }, NOW_MS), /'at' is not a date between 1970 and 9999/)
  }
  for (const at of ['2026-11-15', NOW_MS, null]) {
    // @ts-expect-error a caller without types can give anything
    assert.throws(() => checkDue({ at }, NOW_MS), OptionError, String(at))
  }
  assert.throws(() => checkDue({ delay: '1d' }, Date.UTC(9999, 11, 31)), /'delay' reaches beyond the year 9999/)
})

// A09 A43
test('a timeout is above 0', () => {
  assert.equal(checkTimeoutMs('5m'), 300_000)
  assert.throws(() => checkTimeoutMs(0), /'timeout' is 0/)
  assert.throws(() => checkTimeoutMs(0.2), /'timeout' is 0/)
})

test('only what the worker needs travels with the job, checked', () => {
  assert.equal(storedOptions({}), null)
  assert.equal(storedOptions({ priority: 1, delay: '1s', key: 'k' }), null)
  const backoff = { kind: 'fixed', delay: '1s' } as const
  assert.deepEqual(storedOptions({ backoff }), { backoff })
  assert.deepEqual(storedOptions({ timeout: '2s' }), { timeoutMs: 2_000 })
  assert.deepEqual(storedOptions({ backoff, timeout: 5 }), { backoff, timeoutMs: 5 })
  assert.throws(() => storedOptions({ backoff: { kind: 'list', delays: [] } }), OptionError)
  assert.throws(() => storedOptions({ timeout: 0 }), OptionError)
})

const id = '01J8ZQK3V5X7M9N2P4R6T8W0YB'
const digest = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 16)

// B198 X094
test('a content key is its prefix and the first 16 hex digits of the SHA-256', () => {
  assert.equal(contentKey('sanitize', id), `sanitize-${digest(id)}`)
})

// B197
test('a nonce gives another key for the same content', () => {
  assert.equal(contentKey('sanitize', id, 'again'), `sanitize-${digest(`${id}:again`)}`)
  assert.notEqual(contentKey('sanitize', id, 'again'), contentKey('sanitize', id))
})

// B199
test('a prefix that makes a bad key is refused', () => {
  assert.throws(() => contentKey('a\nb', id), { code: 'ERR_OPTION_INVALID' })
  assert.throws(() => contentKey('x'.repeat(600), id), { code: 'ERR_OPTION_INVALID' })
})
