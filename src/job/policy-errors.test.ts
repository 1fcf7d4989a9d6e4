import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { createServer } from 'node:net'
import { test } from 'node:test'
import {
  EngineError,
  JobTimeoutError,
  NonRetryable,
  Offline,
  OptionError,
  PayloadError,
  ResultError,
  RetryAfter,
} from '../errors.ts'
import { isFinal, isRetryable } from './policy.ts'

const named = (name: string): Error => Object.assign(new Error('x'), { name })
const coded = (code: string): Error => Object.assign(new Error('x'), { code })
const withStatus = (status: unknown): Error => Object.assign(new Error('x'), { status })

// A69 A70 A71 A72 A73
test('failures of the connection are retryable', () => {
  assert.equal(isRetryable(named('NetworkError')), true)
  assert.equal(isRetryable(named('TimeoutError')), true)
  assert.equal(isRetryable(coded('ECONNRESET')), true)
  for (const status of [429, 500, 503, 599]) assert.equal(isRetryable(withStatus(status)), true, `${status}`)
})

// X040
test('a receiver that is down is retryable, whichever way it shows', () => {
  for (const code of ['ECONNREFUSED', 'ETIMEDOUT', 'ENOTFOUND', 'EAI_AGAIN']) {
    assert.equal(isRetryable(coded(code)), true, code)
  }
  assert.equal(isRetryable(named('AbortError')), true)
  for (const status of [408, 425]) assert.equal(isRetryable(withStatus(status)), true, `${status}`)
})

// A74
test('anything else is not retryable by that list', () => {
  for (const status of [400, 401, 404, 409, 422, 499]) assert.equal(isRetryable(withStatus(status)), false, `${status}`)
  for (const thrown of [new Error('x'), coded('EACCES'), 'ECONNRESET', undefined, null, 429, {}, withStatus('500')]) {
    assert.equal(isRetryable(thrown), false, String(thrown))
  }
})

// X040
test("Node's fetch hides the code of a refused connection in the cause; it is found there", async () => {
  const server = createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const address = server.address()
  assert.ok(typeof address === 'object' && address !== null)
  await new Promise((resolve) => server.close(resolve))
  const error = await fetch(`http://127.0.0.1:${address.port}/`).then(
    () => assert.fail('nobody listens there'),
    (refused: unknown) => refused,
  )
  assert.equal(isRetryable(error), true)
})

// X023 X144
test('a final failure is one that says so, or an HTTP status that no retry can change', () => {
  assert.equal(isFinal(new NonRetryable('x')), true)
  assert.equal(isFinal(new PayloadError('ERR_PAYLOAD_INVALID', 'x')), true)
  assert.equal(isFinal(new PayloadError('ERR_PAYLOAD_NOT_JSON', 'x')), true)
  assert.equal(isFinal(new ResultError('ERR_RESULT_NOT_JSON', 'x')), true)
  for (const status of [400, 404, 410, 422]) assert.equal(isFinal(withStatus(status)), true, `${status}`)
})

// X023
test('unknown errors are retried', () => {
  const unknown = [
    new Error('x'),
    new TypeError('x'),
    'text',
    undefined,
    null,
    {},
    withStatus(500),
    withStatus(429),
    withStatus('404'),
    new RetryAfter('1s'),
    // A handler that asked to be retried meant it, whatever else the error carries.
    Object.assign(new RetryAfter('1s'), { status: 404 }),
    new Offline(),
    new OptionError('x'),
    new EngineError('ERR_STORAGE_BUSY', 'x'),
    new JobTimeoutError('a', 5),
    new PayloadError('ERR_PAYLOAD_VERSION', 'x'),
  ]
  for (const error of unknown) assert.equal(isFinal(error), false, String(error))
})

// X023
test('the status of a child process is an exit code, not HTTP: its failure is retried', () => {
  const { status } = spawnSync(process.execPath, ['-e', 'process.exit(3)'])
  assert.equal(status, 3)
  for (const exitCode of [status, 1, 127, 137, 255, 0])
    assert.equal(isFinal(withStatus(exitCode)), false, `${exitCode}`)
})

test('an error whose fields throw when read is an unknown error', () => {
  const hostile = new Proxy(new Error('x'), {
    get: () => {
      throw new Error('hands off')
    },
  })
  assert.equal(isRetryable(hostile), false)
  assert.equal(isFinal(hostile), false)
})
