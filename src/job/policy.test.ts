import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { NonRetryable, Offline, PayloadError, Postpone, RetryAfter } from '../errors.ts'
import type { Backoff } from './backoff.ts'
import { redact } from './error-record.ts'
import { decide, type FailedAttempt } from './policy.ts'

const random = (): number => 0
const failed = (overrides: Partial<FailedAttempt> = {}): FailedAttempt => ({
  attempt: 1,
  attempts: 3,
  backoff: { kind: 'fixed', delay: '7s' },
  error: new Error('it broke'),
  ...overrides,
})

// A40 B05 B47 B90 X002
test('a failure with attempts left waits its backoff', () => {
  const verdict = decide(failed(), random)
  assert.ok(verdict.kind === 'retry')
  assert.equal(verdict.delayMs, 7_000)
  assert.equal(verdict.error.message, 'it broke')
})

// A40 B48 B123 X002
test('attempts is the number of starts: the last failed one makes a dead letter', () => {
  const kinds = [1, 2, 3, 4].map((attempt) => decide(failed({ attempt }), random).kind)
  assert.deepEqual(kinds, ['retry', 'retry', 'dead', 'dead'])
  assert.equal(decide(failed({ attempts: 1 }), random).kind, 'dead')
})

// D30 X002
test('five retries are six starts', () => {
  const backoff: Backoff = { kind: 'list', delays: ['1s', '5s', '30s', '5m', '30m'] }
  const verdicts = [1, 2, 3, 4, 5, 6].map((attempt) => decide(failed({ attempt, attempts: 6, backoff }), random))
  assert.deepEqual(
    verdicts.map((verdict) => (verdict.kind === 'retry' ? verdict.delayMs : verdict.kind)),
    [1_000, 5_000, 30_000, 300_000, 1_800_000, 'dead'],
  )
})

// X023 B189
test('a final error is dead at once, with attempts left', () => {
  const final = [
    new NonRetryable('no'),
    new PayloadError('ERR_PAYLOAD_INVALID', 'Invalid payload: x'),
    Object.assign(new Error('gone'), { status: 410 }),
  ]
  for (const error of final) assert.equal(decide(failed({ error }), random).kind, 'dead', error.message)
})

test('RetryAfter chooses the next time and uses an attempt', () => {
  const verdict = decide(failed({ error: new RetryAfter('90s') }), random)
  assert.ok(verdict.kind === 'retry')
  assert.equal(verdict.delayMs, 90_000)
  assert.equal(decide(failed({ attempt: 3, error: new RetryAfter('90s') }), random).kind, 'dead')
})

// X101 B06
test('Offline gives the job back without using an attempt, even at the last one', () => {
  for (const attempt of [1, 3]) {
    assert.deepEqual(decide(failed({ attempt, error: new Offline() }), random), {
      kind: 'release',
      delayMs: 60_000,
      reason: 'offline',
    })
  }
  const verdict = decide(failed({ error: new Offline('no route', { delay: '5s' }) }), random)
  assert.ok(verdict.kind === 'release')
  assert.equal(verdict.delayMs, 5_000)
})

test('Offline without a delay is deferred all the same', () => {
  for (const delay of [0, 1, '99ms']) {
    const verdict = decide(failed({ error: new Offline('away', { delay }) }), random)
    assert.deepEqual(verdict, { kind: 'release', delayMs: 100, reason: 'offline' })
  }
})

// X100
test('Postpone gives the job back with its reason and uses no attempt, even at the last one', () => {
  const error = new Postpone('12s', 'waiting for 2 confirmations')
  const verdict = { kind: 'release', delayMs: 12_000, reason: 'postponed: waiting for 2 confirmations' }
  for (const attempt of [1, 3]) assert.deepEqual(decide(failed({ attempt, error }), random), verdict)
  const hasty = decide(failed({ error: new Postpone(0, 'x'.repeat(500)) }), random)
  assert.ok(hasty.kind === 'release')
  assert.deepEqual([hasty.delayMs, hasty.reason.length], [100, 200 + 'postponed: '.length])
})

// X100
test('the reason of a Postpone is redacted like an error, also by a redactor of the user', () => {
  const redactor = (text: string): string => redact(text).replaceAll('Ann', '[name]')
  const error = new Postpone('12s', 'waiting for Ann, password=hunter2hunter2')
  const verdict = decide(failed({ error }), random, redactor)
  assert.ok(verdict.kind === 'release')
  assert.equal(verdict.reason, 'postponed: waiting for [name], password=[redacted]')
  const broken = decide(failed({ error }), random, () => {
    throw new Error('a redactor of the user')
  })
  assert.ok(broken.kind === 'release')
  assert.doesNotMatch(broken.reason, /Ann|hunter2/)
})

test('a payload from a newer version waits for a newer worker without using an attempt', () => {
  const error = new PayloadError('ERR_PAYLOAD_VERSION', 'version 2')
  const verdict = decide(failed({ attempt: 3, error }), random)
  assert.ok(verdict.kind === 'release')
  assert.ok(verdict.delayMs > 0)
})

test('a delay that a handler got wrong does not stop the verdict: the backoff decides and the record says so', () => {
  const verdict = decide(failed({ error: new RetryAfter('soon', 'rate limited') }), random)
  assert.ok(verdict.kind === 'retry')
  assert.equal(verdict.delayMs, 7_000)
  assert.match(verdict.error.message, /rate limited.*'RetryAfter\.delay' is 'soon'/)

  const long = decide(failed({ error: new RetryAfter('9'.repeat(5_000), 'x'.repeat(5_000)) }), random)
  assert.ok(long.kind === 'retry')
  assert.ok(long.error.message.length <= 2_000)

  const offline = decide(failed({ error: new Offline('away', { delay: 'x' }) }), random)
  assert.ok(offline.kind === 'release')
  assert.equal(offline.delayMs, 60_000)
})

test('a stored backoff that a foreign producer got wrong makes a dead letter that says so, not a stuck job', () => {
  const verdictOn = (stored: string) => {
    const backoff: Backoff = JSON.parse(stored)
    const verdict = decide(failed({ backoff }), random)
    assert.ok(verdict.kind === 'dead', stored)
    return verdict.error.message
  }
  assert.match(verdictOn('{"kind":"fibonacci"}'), /it broke.*'backoff\.kind' must be/)
  assert.match(verdictOn('null'), /it broke.*'backoff\.kind' must be/)
  // Without the check this would be a retry without any wait, over and over.
  assert.match(verdictOn('{"kind":"list","delays":[]}'), /it broke.*'backoff\.delays' is empty/)
})

// B201
test('the recorded error has passed the redactor', () => {
  const verdict = decide(failed({ error: new Error('for a@b.example') }), random)
  assert.ok(verdict.kind === 'retry')
  assert.equal(verdict.error.message, 'for [email]')
  const own = decide(failed({ error: new Error('for acme') }), random, (text) => text.replaceAll('acme', '…'))
  assert.ok(own.kind === 'retry')
  assert.equal(own.error.message, 'for …')
})

// X141
test('whatever is thrown, there is a verdict', () => {
  fc.assert(
    fc.property(
      fc.anything({ withBigInt: true, withNullPrototype: true, withObjectString: true }),
      fc.integer({ min: 1, max: 12 }),
      (error, attempt) => {
        const { kind } = decide(failed({ error, attempt, attempts: 10 }), random)
        assert.ok(kind === 'dead' || (kind === 'retry' && attempt < 10), `${kind} after attempt ${attempt}`)
      },
    ),
  )
})

/** The same module again, as a second copy of the package in a program's node_modules is. */
async function secondCopy(): Promise<typeof import('../errors.ts')> {
  const copy: typeof import('../errors.ts') = await import(new URL('../errors.ts?second-copy', import.meta.url).href)
  assert.notEqual(copy.Offline, Offline)
  return copy
}

test('errors of a second copy of the package mean what they mean in the first', async () => {
  const copy = await secondCopy()
  const verdicts = (errors: typeof copy) =>
    [
      new errors.NonRetryable('no'),
      new errors.RetryAfter('90s', 'later'),
      new errors.Offline('away', { delay: '5s' }),
      new errors.PayloadError('ERR_PAYLOAD_VERSION', 'version 2'),
      new errors.PayloadError('ERR_PAYLOAD_INVALID', 'Invalid payload'),
      new errors.ResultError('ERR_RESULT_TOO_LARGE', 'large'),
      new errors.PredecessorError({ id: 'a', type: null, state: 'dead' }),
      Object.assign(new errors.JobTimeoutError('a', 5), { status: 404 }),
    ].map((error) => {
      const verdict = decide(failed({ error }), random)
      return verdict.kind === 'dead' ? 'dead' : `${verdict.kind} ${verdict.delayMs}`
    })
  assert.deepEqual(verdicts(copy), [
    'dead',
    'retry 90000',
    'release 5000',
    'release 10000',
    'dead',
    'dead',
    'dead',
    'retry 7000',
  ])
  assert.deepEqual(verdicts(await import('../errors.ts')), verdicts(copy))
})

test('a value that throws when it is looked at gets a verdict like any other', () => {
  const throwing = (): never => {
    throw new Error('hands off')
  }
  const { proxy, revoke } = Proxy.revocable(new Offline(), {})
  revoke()
  const values: readonly unknown[] = [
    proxy,
    new Proxy(() => {}, { get: throwing, getPrototypeOf: throwing, has: throwing }),
    Object.defineProperty(new Error('x'), 'code', { get: throwing }),
    Object.defineProperty(new Error('x'), 'status', { get: throwing }),
  ]
  for (const error of values) {
    assert.equal(decide(failed({ error }), random).kind, 'retry')
    assert.equal(decide(failed({ error, attempt: 3 }), random).kind, 'dead')
  }
  // Only the delay cannot be read: it is offline all the same.
  const offline = Object.defineProperty(new Offline(), 'delay', { get: throwing })
  assert.deepEqual(decide(failed({ error: offline }), random), { kind: 'release', delayMs: 60_000, reason: 'offline' })
})
