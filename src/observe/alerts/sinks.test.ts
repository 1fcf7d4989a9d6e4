import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import { type TestContext, test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { at, breach, rigged } from '../../../test/fixtures/alerting.ts'
import { capturingLog, type LogLine } from '../../testing/capture.ts'
import { TestClock } from '../../testing/test-clock.ts'
import { type AlertNotice, Evaluator } from './evaluator.ts'
import type { AlertRule } from './rule.ts'
import { logAlerter, logSink, webhookSink } from './sinks.ts'

test('the log sink writes errors, warnings and what is resolved', async () => {
  const lines: LogLine[] = []
  const sink = logSink(capturingLog(lines))
  const evaluator = (severity: AlertRule['severity']) => {
    const { rule, says } = rigged({ severity, runbook: 'docs/runbook.md#rigged' })
    says(breach(1, { type: 'a' }))
    const one = new Evaluator([rule], 600_000)
    for (const notice of one.step(at(0))) sink(notice)
    says()
    for (const notice of one.step(at(1))) sink(notice)
  }
  evaluator('critical')
  evaluator('warning')
  assert.deepEqual(
    lines.map(({ level, text }) => [level, text]),
    [
      ['error', 'Alert rigged: it is 1'],
      ['info', 'Alert resolved: rigged'],
      ['warn', 'Alert rigged: it is 1'],
      ['info', 'Alert resolved: rigged'],
    ],
  )
  assert.partialDeepStrictEqual(lines[0]?.fields, {
    alert: 'rigged',
    labels: { type: 'a' },
    value: 1,
    threshold: 1,
    runbook: 'docs/runbook.md#rigged',
  })
})

test('the log alerter writes the alert of a dead letter, and an error where its type is critical', () => {
  const lines: LogLine[] = []
  const { send } = logAlerter(capturingLog(lines))
  const facts = { rule: 'DeadLetter', title: 'Worker a final failure', text: 'job 1 is a dead letter', value: null }
  const [labels, metadata] = [
    { jobType: 'a', jobId: '1' },
    { jobType: 'a', jobId: '1', tenant: null },
  ]
  send({ ...facts, severity: 'warning', severityLabel: 'warning', labels, sinceMs: 0 })
  send({ ...facts, severity: 'error', severityLabel: 'high', labels, metadata, sinceMs: 0 })
  const shown = { title: facts.title, message: facts.text, tags: labels }
  assert.deepEqual(
    lines.map(({ level, text, fields }) => [level, text, fields]),
    [
      ['warn', 'Alert: Worker a final failure', { ...shown, severity: 'warning', metadata: undefined }],
      ['error', 'Alert: Worker a final failure', { ...shown, severity: 'high', metadata }],
    ],
  )
})

interface Hook {
  readonly url: string
  readonly received: { readonly headers: IncomingHttpHeaders; readonly body: unknown }[]
}

/** Answers with each status in turn, the last one for ever; 0 never answers. */
async function hook(t: TestContext, ...statuses: readonly number[]): Promise<Hook> {
  const received: Hook['received'] = []
  const server: Server = createServer(async (request, response) => {
    received.push({ headers: request.headers, body: await json(request) })
    const status = statuses[Math.min(received.length, statuses.length) - 1] ?? 200
    if (status === 0) return
    response.writeHead(status, status === 302 ? { location: '/elsewhere' } : {}).end('thanks')
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  // A server that listens on TCP has an address of this form.
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}/hook`, received }
}

function notice(): AlertNotice {
  const { rule, says } = rigged()
  says(breach(7, { type: 'a' }))
  const [first] = new Evaluator([rule], 600_000).step(at(Date.UTC(2026, 0, 1)))
  assert.ok(first)
  return first
}

test('a webhook is sent JSON with the headers given', async (t) => {
  const { url, received } = await hook(t, 200)
  await webhookSink(url, { headers: { authorization: 'Bearer secret' } })(notice())
  assert.equal(received.length, 1)
  assert.equal(received[0]?.headers.authorization, 'Bearer secret')
  assert.equal(received[0]?.headers['content-type'], 'application/json')
  assert.deepEqual(received[0]?.body, {
    status: 'firing',
    repeated: false,
    rule: 'rigged',
    severity: 'error',
    severityLabel: 'ERROR',
    labels: { type: 'a' },
    value: 7,
    threshold: 1,
    text: 'it is 7',
    since: '2026-01-01T00:00:00.000Z',
    resolvedAt: null,
  })
})

/** Moves the clock until it is over: a request takes real time. */
async function over(clock: TestClock, sending: Promise<unknown>): Promise<'sent' | string> {
  let answer: string | null = null
  sending.then(
    () => {
      answer = 'sent'
    },
    (error: Error) => {
      answer = error.message
    },
  )
  while (answer === null) {
    await clock.advance('1s')
    await turn()
  }
  return answer
}

test('a webhook is tried twice where that may help, and only there', async (t) => {
  const cases: readonly (readonly [readonly number[], number, RegExp])[] = [
    [[503, 200], 2, /^sent$/],
    [[429, 204], 2, /^sent$/],
    [[500, 500, 200], 2, /answered 500/],
    [[401, 200], 1, /answered 401/],
    [[302, 200], 1, /answered 302/],
  ]
  for (const [statuses, times, expected] of cases) {
    const { url, received } = await hook(t, ...statuses)
    const clock = new TestClock()
    assert.match(await over(clock, Promise.resolve(webhookSink(url, { clock, timeout: '1d' })(notice()))), expected)
    assert.equal(received.length, times, `${statuses}`)
  }
})

test('a webhook that does not answer is given up after its time, twice', async (t) => {
  const { url, received } = await hook(t, 0)
  const clock = new TestClock()
  const sending = Promise.resolve(webhookSink(url, { clock, timeout: '5s' })(notice()))
  assert.match(await over(clock, sending), /5000 ms/)
  assert.ok(received.length <= 2)
  assert.equal(clock.waiting, 0)
})

test('an invalid address is refused at once', () => {
  for (const url of ['', 'hooks.example.com', 'file:///etc/passwd']) {
    assert.throws(() => webhookSink(url), { code: 'ERR_OPTION_INVALID' }, url)
  }
})
