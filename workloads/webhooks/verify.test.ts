import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { Server } from 'node:http'
import { createRequire } from 'node:module'
import { test } from 'node:test'
import fc from 'fast-check'
import { Hono } from 'hono'
import { Webhook as Oracle } from 'standardwebhooks'
import { isMillraceError } from '../../src/errors.ts'
import { TestClock } from '../../src/testing/index.ts'
import { newSecret, type ReceivedWebhook, sign, verifyWebhook } from './index.ts'

/** Express has no types of its own: only what is used here. */
interface Express {
  (): {
    post(path: string, ...handlers: readonly unknown[]): void
    listen(port: number, host: string): Server
  }
  raw(options: { readonly type: string }): unknown
}
const express: Express = createRequire(import.meta.url)('express')

const clock = new TestClock()
const secret = newSecret()
const body = '{"type":"order.paid","data":{"total":"12 €"}}'

function signed(text = body, key = secret, atMs = clock.nowMs()) {
  const timestamp = Math.floor(atMs / 1_000)
  const signature = sign({ id: 'msg_1', timestamp, body: text }, [key])
  return { 'webhook-id': 'msg_1', 'webhook-timestamp': String(timestamp), 'webhook-signature': signature }
}

const isRefused = (error: unknown): boolean => isMillraceError(error, 'ERR_WEBHOOK_UNVERIFIED')

const verify = (received: ReceivedWebhook, keys: string | readonly string[] = secret) =>
  verifyWebhook(received, keys, { clock })

test('a signed request returns its payload, in every form in which frameworks have it', async () => {
  const headers = signed()
  const request = new Request('https://a.example/hooks', { method: 'POST', headers, body })
  const forms: readonly ReceivedWebhook[] = [
    request,
    { headers, body },
    { headers: new Headers(headers), body: Buffer.from(body) },
    {
      headers: Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toUpperCase(), [value]])),
      body,
    },
  ]
  for (const form of forms) assert.deepEqual(await verify(form), JSON.parse(body))
})

test('what was changed, is old, or was signed with another secret is refused', async () => {
  const headers = signed()
  const old = signed(body, secret, clock.nowMs() - 301_000)
  const early = signed(body, secret, clock.nowMs() + 302_000)
  const { 'webhook-signature': _, ...unsigned } = headers
  const bad: readonly ReceivedWebhook[] = [
    { headers, body: `${body} ` },
    { headers: { ...headers, 'webhook-id': 'msg_2' }, body },
    { headers: { ...headers, 'webhook-timestamp': String(Number(headers['webhook-timestamp']) + 1) }, body },
    { headers: { ...headers, 'webhook-timestamp': 'now' }, body },
    { headers: { ...headers, 'webhook-timestamp': '1e9' }, body },
    { headers: { ...headers, 'webhook-signature': 'v1,AAAA' }, body },
    { headers: { ...headers, 'webhook-signature': headers['webhook-signature'].slice(3) }, body },
    { headers: unsigned, body },
    { headers: {}, body },
    { headers: signed(body, newSecret()), body },
    { headers: old, body },
    { headers: early, body },
    { headers: signed('not json'), body: 'not json' },
  ]
  for (const one of bad) await assert.rejects(verify(one), isRefused, JSON.stringify(one))
  assert.deepEqual(await verifyWebhook({ headers: old, body }, secret, { clock, tolerance: '10m' }), JSON.parse(body))
})

test('while a secret is replaced, both are taken', async () => {
  const next = newSecret()
  const both = sign({ id: 'm', timestamp: clock.nowMs() / 1_000, body }, [next, secret])
  const headers = { 'webhook-id': 'm', 'webhook-timestamp': String(clock.nowMs() / 1_000), 'webhook-signature': both }
  for (const keys of [secret, next, [newSecret(), next]]) {
    assert.deepEqual(await verify({ headers, body }, keys), JSON.parse(body))
  }
})

test('mistakes of the receiver are told from forged requests', async () => {
  const request = new Request('https://a.example', { method: 'POST', headers: signed(), body })
  await request.text()
  const cases: readonly (readonly [Promise<unknown>, RegExp])[] = [
    [verify(request), /the body was read already/],
    [verify({ headers: signed(), body: Object({ parsed: true }) }), /pass the raw body/],
    [verify({ headers: signed(), body }, []), /there is no secret/],
    [verify({ headers: signed(), body }, 'whsec_short'), /whsec_ and 24 to 64 bytes/],
    [verifyWebhook({ headers: signed(), body }, secret, { tolerence: 1 } as object), /did you mean 'tolerance'/],
  ]
  for (const [verified, message] of cases) {
    await assert.rejects(
      verified,
      (error) => isMillraceError(error, 'ERR_OPTION_INVALID') && message.test(error.message),
    )
  }
})

test('the reference library verifies what we sign, and we verify what it signs', async () => {
  const texts = fc.asyncProperty(fc.json(), fc.uuid(), async (text, id) => {
    const now = new Date()
    const timestamp = Math.floor(now.getTime() / 1_000)
    const ours = {
      'webhook-id': id,
      'webhook-timestamp': String(timestamp),
      'webhook-signature': sign({ id, timestamp, body: text }, [newSecret(), secret]),
    }
    assert.deepEqual(new Oracle(secret).verify(text, ours), JSON.parse(text))
    const theirs = { ...ours, 'webhook-signature': new Oracle(secret).sign(id, now, text) }
    assert.deepEqual(await verifyWebhook({ headers: theirs, body: text }, secret), JSON.parse(text))
  })
  await fc.assert(texts, { numRuns: 100 })
})

test('it works in Hono and in Express', async () => {
  const hono = new Hono().post('/hooks', async (c) => c.json(await verifyWebhook(c.req.raw, secret, { clock })))
  const answer = await hono.request('/hooks', { method: 'POST', headers: signed(), body })
  assert.deepEqual(await answer.json(), JSON.parse(body))
  const app = express()
  app.post(
    '/hooks',
    express.raw({ type: '*/*' }),
    async (request: ReceivedWebhook, response: { json(value: unknown): void }) => {
      response.json(await verifyWebhook(request, secret, { clock }))
    },
  )
  const server = app.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${Object(server.address()).port}/hooks`
  const headers = { ...signed(), 'content-type': 'application/json' }
  const reply = await fetch(url, { method: 'POST', headers, body })
  assert.deepEqual(await reply.json(), JSON.parse(body))
  server.close()
})

test('a Request and Headers of another library than Node are read, and what is neither is refused clearly', async () => {
  const values = signed()
  const headers = { get: (name: string) => new Headers(values).get(name) }
  const foreign = { headers, bodyUsed: false, text: async () => body }
  for (const received of [foreign, { headers, body }]) {
    assert.deepEqual(await verify(received as unknown as ReceivedWebhook), JSON.parse(body))
  }
  const used = { ...foreign, bodyUsed: true }
  await assert.rejects(verify(used as unknown as ReceivedWebhook), /read already/)
  for (const bad of [null, { body }, { headers: null, body }]) {
    await assert.rejects(verify(bad as unknown as ReceivedWebhook), (error) =>
      isMillraceError(error, 'ERR_OPTION_INVALID'),
    )
  }
  await assert.rejects(
    verify({ headers: { ...values, 'webhook-id': 5 }, body } as object as ReceivedWebhook),
    isRefused,
  )
})
