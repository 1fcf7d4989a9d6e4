import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as errors from './errors.ts'

const { ClosedError, JobTimeoutError, LeaseLostError, MillraceError, NonRetryable, Offline, Postpone } = errors
const { OptionError, RetryAfter, StoppingError, UnknownJobError, UnknownTypeError } = errors
const { UnsupportedError, WaitTimeoutError } = errors

test('every error has a stable code and its class as its name', () => {
  const samples = [
    [new OptionError('x'), 'ERR_OPTION_INVALID', 'OptionError'],
    [new UnknownTypeError('a', []), 'ERR_TYPE_UNKNOWN', 'UnknownTypeError'],
    [new UnknownJobError('1'), 'ERR_JOB_UNKNOWN', 'UnknownJobError'],
    [new UnsupportedError({ engine: 'memory', limit: 'cannot' }), 'ERR_UNSUPPORTED', 'UnsupportedError'],
    [new JobTimeoutError('a', 5), 'ERR_JOB_TIMEOUT', 'JobTimeoutError'],
    [new LeaseLostError('1', 'expired'), 'ERR_LEASE_LOST', 'LeaseLostError'],
    [new StoppingError(), 'ERR_STOPPING', 'StoppingError'],
    [new WaitTimeoutError('the result', 5), 'ERR_WAIT_TIMEOUT', 'WaitTimeoutError'],
    [new ClosedError('this mill'), 'ERR_CLOSED', 'ClosedError'],
    [new NonRetryable('x'), 'ERR_NON_RETRYABLE', 'NonRetryable'],
    [new RetryAfter('1s'), 'ERR_RETRY_AFTER', 'RetryAfter'],
    [new Offline(), 'ERR_OFFLINE', 'Offline'],
    [new Postpone('1s'), 'ERR_POSTPONED', 'Postpone'],
    [new errors.PayloadError('ERR_PAYLOAD_INVALID', 'x'), 'ERR_PAYLOAD_INVALID', 'PayloadError'],
    [new errors.ResultError('ERR_RESULT_NOT_JSON', 'x'), 'ERR_RESULT_NOT_JSON', 'ResultError'],
    [new errors.EngineError('ERR_ENGINE_URL', 'x'), 'ERR_ENGINE_URL', 'EngineError'],
    [new errors.PredecessorError({ id: '1', type: 'a', state: 'dead' }), 'ERR_PREDECESSOR_DEAD', 'PredecessorError'],
    [new errors.UnknownScheduleError('nightly'), 'ERR_SCHEDULE_UNKNOWN', 'UnknownScheduleError'],
    [new errors.JobEndedError('ERR_JOB_DEAD', 'x'), 'ERR_JOB_DEAD', 'JobEndedError'],
  ] as const
  for (const [error, code, name] of samples) {
    assert.ok(error instanceof MillraceError && error instanceof Error)
    assert.deepEqual([error.code, error.name], [code, name])
  }
  const covered = new Set<string>(samples.map(([, , name]) => name))
  const isClass = (value: unknown): boolean => typeof value === 'function' && value.prototype instanceof MillraceError
  const classes = Object.entries(errors).flatMap(([name, value]) => (isClass(value) ? [name] : []))
  assert.deepEqual(
    classes.filter((name) => !covered.has(name)),
    [],
    'an error class without a sample above',
  )
})

test('a message says what to do next', () => {
  assert.match(new UnknownTypeError('a', ['b', 'c']).message, /'a' is known here \(known: b, c\); pass its definition/)
  assert.match(new UnknownTypeError('a', []).message, /\(known: none\)/)
  assert.match(new UnknownJobError('17').message, /'17'.*never enqueued here, or it was removed by retention/)
  assert.match(new JobTimeoutError('a', 5).message, /timeout of 5 ms; raise 'timeout', or stop when 'signal' aborts/)
  assert.match(new ClosedError('this mill').message, /this mill is closed; open a new one/)
})

test('a refusal names the job, the engine and the limit', () => {
  const refusal = new UnsupportedError({ job: 'send', engine: 'kafka', limit: 'cannot delay a job' })
  assert.equal(refusal.message, "job 'send': the kafka engine cannot delay a job")
  assert.deepEqual([refusal.job, refusal.engine, refusal.limit], ['send', 'kafka', 'cannot delay a job'])
  const general = new UnsupportedError({ engine: 'kafka', limit: 'cannot' })
  assert.deepEqual([general.job, general.message], [null, 'the kafka engine cannot'])
})

test('what a handler throws keeps its cause, its delay and its message', () => {
  const cause = new Error('socket')
  assert.equal(new NonRetryable('x', { cause }).cause, cause)
  assert.equal(new RetryAfter('5s', 'busy', { cause }).cause, cause)
  assert.deepEqual([new RetryAfter('5s').delay, new RetryAfter(7).delay], ['5s', 7])
  assert.deepEqual([new Offline().delay, new Offline('x', { delay: '5s' }).delay], [60_000, '5s'])
  assert.equal(new Offline('x', { cause }).cause, cause)
})
