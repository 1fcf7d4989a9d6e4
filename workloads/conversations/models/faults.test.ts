/** What the adapters make of servers that fail: the kind of error decides what the queue does with the job. */
import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { type TestContext, test } from 'node:test'
import { isMillraceError } from '../../../src/errors.ts'
import { TestClock } from '../../../src/testing/test-clock.ts'
import {
  anthropicDialect,
  type Dialect,
  json,
  type ModelServer,
  modelServer,
  openAiDialect,
} from '../../../test/fixtures/model-server.ts'
import { approvedFetch } from '../../language-models/approved-fetch.ts'
import { ModelFailure } from '../../language-models/model-call.ts'
import { modelFrom } from './config.ts'

const messages = [{ id: 'm-1', role: 'user', content: 'a quoted message about john_smith' }]
const clock = new TestClock(Date.parse('2026-11-17T05:00:00Z'))

interface Failing extends ModelServer {
  /** What asking ends with. */
  ask(signal?: AbortSignal): Promise<unknown>
}

async function failing(t: TestContext, dialect: Dialect, answer: (response: ServerResponse) => void): Promise<Failing> {
  const server = await modelServer(t, answer)
  const config = { kind: dialect.kind, url: server.url + dialect.base, model: 'm', keyRef: 'env:MODEL_KEY' }
  const model = modelFrom(config, { env: { MODEL_KEY: 'sk-hidden' }, clock })
  const fetch = approvedFetch({ endpoints: [config.url] })
  const ask = async (signal = new AbortController().signal): Promise<unknown> =>
    model.findPersonalData(messages, { fetch, signal }).then(
      () => assert.fail('it should have failed'),
      (error: unknown) => {
        assert.ok(error instanceof Error)
        assert.doesNotMatch(error.message, /john|quoted|hidden/)
        return error
      },
    )
  return { ...server, ask }
}

/** An error body as the APIs send them, which quotes what it was sent. */
const body = (type: string) => ({
  type: 'error',
  error: { type, message: 'your prompt "a quoted message about john_smith" with "type":"john" was refused' },
})

const isPlain = (error: unknown): boolean => error instanceof ModelFailure && !isMillraceError(error)

for (const dialect of [anthropicDialect, openAiDialect]) {
  test(`${dialect.kind}: Retry-After in seconds and as a date decides when the job is retried`, async (t) => {
    const cases = [
      [429, '7', 7_000],
      [429, 'Tue, 17 Nov 2026 05:01:30 GMT', 90_000],
      [429, 'Tue, 17 Nov 2026 04:00:00 GMT', 1_000],
      [429, 'soon', 30_000],
      [429, '99999999', 3_600_000],
      [503, '2', 2_000],
      [529, '1', 1_000],
      [500, '3', 3_000],
    ] as const
    let at = 0
    const { ask } = await failing(t, dialect, (response) => {
      const [status, header] = cases[at] ?? []
      if (header !== undefined) response.setHeader('retry-after', header)
      json(response, body('rate_limit_error'), status)
    })
    for (const [status, header, delay] of cases) {
      const error = await ask()
      assert.ok(isMillraceError(error, 'ERR_RETRY_AFTER'), header)
      assert.equal(Reflect.get(error, 'delay'), delay, header)
      assert.match(error.message, new RegExp(`answered with ${status} \\(rate_limit_error\\)$`))
      at += 1
    }
  })

  test(`${dialect.kind}: each status has its meaning`, async (t) => {
    const cases = [
      [401, 'ERR_NON_RETRYABLE', /check env:MODEL_KEY/],
      [403, 'ERR_NON_RETRYABLE', /check env:MODEL_KEY/],
      [400, 'ERR_NON_RETRYABLE', /check the URL and the name of the model/],
      [404, 'ERR_NON_RETRYABLE', /check the URL and the name of the model/],
      [429, 'ERR_RETRY_AFTER', /429/],
      [503, 'ERR_RETRY_AFTER', /503/],
      [529, 'ERR_RETRY_AFTER', /529 \(some_error\)/],
      [408, null, /408/],
      [500, null, /500/],
      [502, null, /502/],
    ] as const
    let at = 0
    const { ask, requests } = await failing(t, dialect, (response) =>
      json(response, body('some_error'), cases[at]?.[0]),
    )
    for (const [status, code, message] of cases) {
      const error = await ask()
      assert.ok(code === null ? isPlain(error) : isMillraceError(error, code), `${status}`)
      assert.match(String(error), message)
      at += 1
    }
    assert.equal(requests.length, cases.length)
  })

  test(`${dialect.kind}: an abort reaches a server that never answers, and one that is slow`, async (t) => {
    const abort = new AbortController()
    const silent = await failing(t, dialect, () => abort.abort(new Error('the job timed out')))
    assert.equal(Reflect.get(Object(await silent.ask(abort.signal)), 'message'), 'the job timed out')

    const later = new AbortController()
    const slow = await failing(t, dialect, (response) => {
      response.writeHead(200, { 'content-type': 'application/json' })
      response.write('{"content":')
      setImmediate(() => later.abort(new Error('the worker stops')))
    })
    assert.equal(Reflect.get(Object(await slow.ask(later.signal)), 'message'), 'the worker stops')
    assert.equal(Reflect.get(Object(await slow.ask(later.signal)), 'message'), 'the worker stops')
    assert.equal(slow.requests.length, 1)
  })

  test(`${dialect.kind}: a connection that closes in the middle of an answer is an ordinary failure`, async (t) => {
    const { ask } = await failing(t, dialect, (response) => {
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': '1000' })
      response.write('{"content":', () => response.destroy())
    })
    const error = await ask()
    assert.ok(isPlain(error))
    assert.match(String(error), /the answer of 127\.0\.0\.1:\d+ broke off after 11 bytes/)
  })

  test(`${dialect.kind}: an answer without end is given up at its limit`, async (t) => {
    let sent = 0
    const { ask } = await failing(t, dialect, (response) => {
      const block = Buffer.alloc(64 * 1024, ' ')
      const more = (): void => {
        while (!response.destroyed) {
          sent += block.length
          if (!response.write(block)) return void response.once('drain', more)
        }
      }
      response.on('error', () => {})
      more()
    })
    const error = await ask()
    assert.ok(isPlain(error))
    assert.match(String(error), /is longer than 4194304 bytes/)
    assert.ok(sent < 64 * 1024 * 1024, `${sent} bytes were sent`)
  })

  test(`${dialect.kind}: a page, half of a JSON or another API is an ordinary failure`, async (t) => {
    const answers = ['<html>Sign in</html>', '{"content":[{"type', '{"ok":true}', 'null', '[]']
    let at = 0
    const { ask } = await failing(t, dialect, (response) => {
      response.writeHead(200, { 'content-type': 'text/html' }).end(answers[at])
    })
    for (const answer of answers) {
      const error = await ask()
      assert.ok(isPlain(error), answer)
      assert.match(String(error), /text\/html that is not JSON|does not have the form/)
      at += 1
    }
  })
}
