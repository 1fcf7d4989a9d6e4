import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Webhook as Oracle } from 'standardwebhooks'
import { openDesk } from '../../src/desk/desk.ts'
import { drain } from '../../src/testing/index.ts'
import { dispatchPayload, newSecret, WebhookDispatchWorker, WebhookFailure } from './index.ts'
import { OK, scene, stubHttp, stubRepo, URL_OF_ALL } from './rig.ts'

describe('the worker of webhook-dispatch', () => {
  // A107 A127
  test('has its type, concurrency and limiter, and takes stubs; the limiter can be lifted', () => {
    const [{ http }, { repo }] = [stubHttp(OK), stubRepo()]
    const { definition } = new WebhookDispatchWorker(http, repo)
    assert.equal(definition.type, 'webhook-dispatch')
    assert.equal(definition.concurrency, 20)
    assert.deepEqual(definition.limit, { max: 100, perMs: 1_000 })
    assert.equal(definition.attempts, 10)
    assert.equal(definition.critical, true)
    assert.equal(new WebhookDispatchWorker(http, repo, { limiter: null }).definition.limit, null)
    assert.throws(() => new WebhookDispatchWorker(http, repo, { limit: 3 } as object), /'limit' is not an option/)
    assert.throws(() => new WebhookDispatchWorker(http, repo, { userAgent: 'a\nb' }), /'userAgent'/)
  })

  // A108
  test('takes webhookId, payload, headers and signature, and refuses what cannot be sent', async () => {
    const whole = { webhookId: 'w', payload: { a: [1, null] }, headers: { 'X-Trace': 't' }, signature: 's' }
    assert.deepEqual(dispatchPayload.parse(whole), whole)
    assert.equal(dispatchPayload.safeParse({ webhookId: 'w', payload: 1 }).success, true)
    for (const bad of [
      { payload: 1 },
      { webhookId: 'w' },
      { webhookId: '', payload: 1 },
      { webhookId: 'w', payload: 1, headers: { 'X-A': 'one\r\nX-B: two' } },
      { webhookId: 'w', payload: 1, headers: { 'X A': 'space' } },
      { webhookId: 'w', payload: 1, url: 'https://elsewhere' },
    ]) {
      assert.equal(dispatchPayload.safeParse(bad).success, false, JSON.stringify(bad))
    }
    await using one = await scene()
    await assert.rejects(one.mill.enqueue(one.job, { webhookId: 'w', payload: 1, headers: { a: '\n' } }), /headers/)
  })

  // A109
  test('an unknown or disabled webhook makes no call and is skipped', async () => {
    for (const webhook of [null, { url: URL_OF_ALL, isEnabled: false, maxFailures: 3 }]) {
      await using one = await scene({ webhook })
      const { state, result } = await one.run()
      assert.equal(state, 'completed')
      assert.deepEqual(result, { success: false, reason: 'webhook_disabled' })
      assert.deepEqual([one.sent.length, one.calls.length], [0, 0])
      assert.ok(one.counted.includes('worker.webhook-dispatch.skipped'))
    }
  })

  // A110 A111 A112 A113 A114 A115 A116
  test('posts the payload as JSON with the headers of the design', async () => {
    await using one = await scene()
    const { id } = await one.run({ payload: { order: 7 }, signature: 'sha256=abc', headers: { 'X-Trace': 't-1' } })
    const [{ url, request } = assert.fail('nothing was sent')] = one.sent
    assert.equal(url, URL_OF_ALL)
    assert.equal(request.body, '{"order":7}')
    assert.equal(request.timeout, 10_000)
    const { 'webhook-timestamp': timestamp, 'webhook-id': standardId, ...headers } = request.headers
    assert.deepEqual(headers, {
      'Content-Type': 'application/json',
      'User-Agent': 'RuvBot-Webhook/1.0',
      'X-Webhook-Id': 'wh_1',
      'X-Delivery-Id': id,
      'X-Signature': 'sha256=abc',
      'X-Trace': 't-1',
    })
    assert.deepEqual([standardId, timestamp], [id, String(one.clock.nowMs() / 1_000)])
  })

  // X046
  test('reserved headers win in any case, and the log names those that were left out', async () => {
    await using one = await scene({ dispatch: { userAgent: 'Acme/2' } })
    const headers = {
      'x-signature': 'forged',
      'X-DELIVERY-ID': 'forged',
      'content-TYPE': 'text/html',
      Host: 'a',
      'X-B': 'b',
    }
    const { id } = await one.run({ signature: 'given', headers })
    const sent = one.sent[0]?.request.headers ?? {}
    assert.equal(sent['X-Signature'], 'given')
    assert.equal(sent['X-Delivery-Id'], id)
    assert.equal(sent['User-Agent'], 'Acme/2')
    const names = Object.keys(sent).map((name) => name.toLowerCase())
    assert.equal(new Set(names).size, names.length)
    assert.equal(names.includes('host'), false)
    assert.equal(sent['X-B'], 'b')
    const [line] = one.lines.filter(({ text }) => text === 'Reserved headers were left out')
    assert.deepEqual(line?.fields.headers, ['x-signature', 'X-DELIVERY-ID', 'content-TYPE', 'Host'])
  })

  // X047
  test('signs timestamp and body when it sends, with every valid secret, so that a retry is signed anew', async () => {
    const [secret, old] = [newSecret(), newSecret()]
    const webhook = { url: URL_OF_ALL, isEnabled: true, maxFailures: 3, secrets: [secret, old] }
    await using one = await scene({ webhook, answers: [{ status: 503 }, OK] })
    await one.run({ signature: 'computed when it was enqueued' })
    const [first, second] = one.sent.map(({ request }) => request)
    assert.ok(first && second)
    for (const { body, headers } of [first, second]) {
      const signature = headers['webhook-signature'] ?? ''
      assert.equal(headers['X-Signature'], signature)
      const sentAt = new Date(Number(headers['webhook-timestamp']) * 1_000)
      for (const [index, key] of [secret, old].entries()) {
        assert.equal(signature.split(' ')[index], new Oracle(key).sign(headers['webhook-id'] ?? '', sentAt, body))
      }
    }
    assert.notEqual(first.headers['webhook-timestamp'], second.headers['webhook-timestamp'])
    assert.notEqual(first.headers['webhook-signature'], second.headers['webhook-signature'])
    assert.equal(first.headers['webhook-id'], second.headers['webhook-id'])
  })

  // X047
  test('a replay by the desk keeps the delivery id, and another job can carry it in its payload', async () => {
    await using one = await scene({ answers: [{ status: 404 }, { status: 404 }, OK] })
    const { id } = await one.run()
    const desk = openDesk(one.mill, { jobs: [one.job], clock: one.clock })
    await desk.replay(id, { who: 'test', reason: 'try again' })
    await drain(one.mill, [one.job])
    const other = await one.run({ deliveryId: id })
    assert.notEqual(other.id, id)
    assert.deepEqual(
      one.sent.map(({ request }) => request.headers['X-Delivery-Id']),
      [id, id, id],
    )
  })

  // A118 A119 A120
  test('records a success and returns it', async () => {
    const data = 'é'.repeat(5_000)
    await using one = await scene({ answers: [{ status: 202, data }] })
    const { id, result } = await one.run()
    assert.deepEqual(result, { success: true, statusCode: 202, latencyMs: 0 })
    const [[record]] = one.named('recordDelivery') as [[Record<string, unknown>]]
    const { webhookId, jobId, status, statusCode, latencyMs, responseBody } = record
    assert.deepEqual(
      { webhookId, jobId, status, statusCode, latencyMs },
      {
        ...{ webhookId: 'wh_1', jobId: id, status: 'success', statusCode: 202, latencyMs: 0 },
      },
    )
    assert.equal(responseBody, 'é'.repeat(1_000))
    const lastDeliveredAt = new Date(one.clock.nowMs())
    assert.deepEqual(one.named('updateStats'), [
      ['wh_1', { lastDeliveredAt, successCount: { increment: 1 }, avgLatencyMs: 0 }],
    ])
  })

  // A121 A122 A126 X045
  test('a failed attempt is recorded and counted, and retried', async () => {
    await using one = await scene({ answers: [{ status: 503 }, OK] })
    const { state, id } = await one.run()
    assert.equal(state, 'completed')
    assert.equal(one.sent.length, 2)
    const records = one.named('recordDelivery').map(([record]) => Object(record))
    assert.deepEqual(
      records.map(({ jobId, status, statusCode, attempt, isFinal }) => [jobId, status, statusCode, attempt, isFinal]),
      [
        [id, 'failed', 503, 1, false],
        [id, 'success', 200, 2, undefined],
      ],
    )
    assert.match(records[0].errorMessage, /receiver\.example answered with status 503/)
    assert.deepEqual(one.named('updateStats')[0], ['wh_1', { failureCount: { increment: 1 } }])
    // Not for good: nothing is counted towards disabling.
    assert.deepEqual(one.named('countRecentFailures'), [])
  })

  // A125 X039 X045
  test('an error that no retry can change makes a dead letter with an alert and the result', async () => {
    await using one = await scene({ answers: [{ status: 404, data: 'no such hook' }] })
    const { state, error, attempt } = await one.run()
    assert.deepEqual([state, attempt, one.sent.length], ['dead_letter', 1, 1])
    assert.equal(error?.code, 'ERR_NON_RETRYABLE')
    assert.match(error?.message ?? '', /^non_retryable_error: receiver\.example answered with status 404$/)
    assert.deepEqual(
      one.alerts.map(({ severityLabel }) => severityLabel),
      ['high'],
    )
    const [[record]] = one.named('recordDelivery') as [[Record<string, unknown>]]
    assert.deepEqual([record.statusCode, record.isFinal], [404, true])
    const failure = await Promise.resolve()
      .then(() =>
        one.worker.process({ webhookId: 'wh_1', payload: 1 }, Object({ id: 'j', signal: { aborted: false } })),
      )
      .catch((thrown: unknown) => thrown)
    assert.ok(failure instanceof WebhookFailure)
    assert.deepEqual(failure.result, {
      ...{ success: false, reason: 'non_retryable_error' },
      error: 'receiver.example answered with status 404',
    })
  })

  // A126
  test('errors of the network are retried, whatever the client calls them', async () => {
    const refused = Object.assign(new Error('connect'), { code: 'ECONNREFUSED' })
    const late = Object.assign(new Error('late'), { name: 'TimeoutError' })
    const thrown = Object.assign(new Error('bad gateway'), { status: 502 })
    await using one = await scene({ answers: [refused, late, thrown, OK] })
    const { state } = await one.run()
    assert.deepEqual([state, one.sent.length], ['completed', 4])
    const codes = one.named('recordDelivery').map(([record]) => Object(record).statusCode)
    assert.deepEqual(codes, [undefined, undefined, 502, 200])
  })

  // A123 A124 X042
  test('only a delivery that failed for good is counted, and the last one disables the endpoint', async () => {
    await using one = await scene({ answers: [{ status: 500 }] })
    one.state.failures = 3
    const { state } = await one.run()
    assert.deepEqual([state, one.sent.length], ['dead_letter', 10])
    assert.deepEqual(one.named('countRecentFailures'), [['wh_1', 86_400_000]])
    assert.deepEqual(one.named('disable'), [['wh_1', 'max_failures_exceeded']])
    const disabled = one.counted.filter((name) => name === 'worker.webhook-dispatch.webhook_disabled')
    assert.equal(disabled.length, 1)
  })

  // X041
  test('an endpoint that is disabled between attempts makes a dead letter with that reason', async () => {
    await using one = await scene({
      answers: [
        () => {
          one.state.webhook = { url: URL_OF_ALL, isEnabled: false, maxFailures: 3, disabledReason: 'by hand' }
          return { status: 503 }
        },
      ],
    })
    const { state, error } = await one.run()
    assert.deepEqual([state, one.sent.length], ['dead_letter', 1])
    assert.match(error?.message ?? '', /^webhook_disabled: the endpoint wh_1 is disabled \(by hand\)/)
  })
})
