import assert from 'node:assert/strict'
import type { Socket } from 'node:net'
import { after, before, test } from 'node:test'
import { fieldOf } from '../../../src/errors.ts'
import { TestClock } from '../../../src/testing/index.ts'
import { type Answer, status, type WebhookReceiver, webhookReceiver } from '../../../test/fixtures/webhook-receiver.ts'
import { type GuardedHttp, guardedHttp } from './guarded-http.ts'

const REQUEST = { body: '{"a":1}', headers: { 'webhook-id': 'msg_1' }, timeout: 5_000 }

let receiver: WebhookReceiver
before(async () => {
  receiver = await webhookReceiver()
})
after(() => receiver.close())

/** A connection answers once. Another request on it is broken off, as by a server that closes idle connections. */
function answerOnce(breakOff: (socket: Socket) => void, afterFirst: Answer = status(200, 'ok')): void {
  const used = new Set<Socket>()
  receiver.answer((response, request) => {
    const { socket } = response
    if (socket === null || used.has(socket)) return socket === null ? undefined : breakOff(socket)
    used.add(socket)
    return (used.size === 1 ? status(200, 'ok') : afterFirst)(response, request)
  })
}

/** The second request on the connection of a first one, and how often it was received. */
async function second(http: GuardedHttp = guardedHttp({ allow: [receiver.origin] })) {
  await http.post(receiver.origin, REQUEST)
  receiver.requests.length = 0
  const outcome = await http.post(receiver.origin, REQUEST).catch((thrown: unknown) => thrown)
  http.close()
  return { outcome, received: receiver.requests.map(({ headers, body }) => [headers['webhook-id'], body]) }
}

const TWICE = [1, 2].map(() => ['msg_1', REQUEST.body])

test('connections are used again', async () => {
  const ports = new Set<unknown>()
  receiver.answer((response) => {
    ports.add(response.socket?.remotePort)
    response.end('ok')
  })
  const http = guardedHttp({ allow: [receiver.origin] })
  for (let round = 0; round < 3; round += 1) await http.post(receiver.origin, REQUEST)
  assert.equal(ports.size, 1)
  http.close()
})

for (const [how, breakOff] of [
  ['reset', (socket: Socket) => void socket.resetAndDestroy()],
  ['closed', (socket: Socket) => void socket.end()],
] as const) {
  test(`a used connection that is ${how} before an answer is replaced by a new one, without an error`, async () => {
    answerOnce(breakOff)
    const { outcome, received } = await second()
    assert.equal(fieldOf(outcome, 'status'), 200)
    assert.deepEqual(received, TWICE)
  })
}

test('a new connection that breaks too is an error: a request is repeated once', async () => {
  answerOnce(
    (socket) => void socket.resetAndDestroy(),
    (response) => void response.socket?.resetAndDestroy(),
  )
  const { outcome, received } = await second()
  assert.equal(fieldOf(outcome, 'code'), 'ECONNRESET')
  assert.deepEqual(received, TWICE)
})

test('a used connection that breaks within the answer is an error: the receiver has begun to answer', async () => {
  answerOnce((socket) => void socket.end('HTTP/1.1 20'))
  const { outcome, received } = await second()
  assert.equal(fieldOf(outcome, 'name'), 'NetworkError')
  assert.equal(received.length, 1)
})

test('the repeated request has what is left of the deadline', async () => {
  const clock = new TestClock()
  answerOnce(
    (socket) => void clock.advance(4_000).then(() => socket.resetAndDestroy()),
    () => void clock.advance(1_000),
  )
  const { outcome, received } = await second(guardedHttp({ allow: [receiver.origin], clock }))
  assert.equal(fieldOf(outcome, 'message'), `127.0.0.1:${receiver.port} did not answer within 5000 ms`)
  assert.deepEqual(received, TWICE)
  assert.equal(clock.monotonicMs(), 5_000)
})

test('an abort while the connection is replaced ends the request with its reason', async () => {
  const stop = new AbortController()
  const reason = new Error('the worker stops')
  answerOnce((socket) => {
    stop.abort(reason)
    socket.resetAndDestroy()
  })
  const http = guardedHttp({ allow: [receiver.origin] })
  await http.post(receiver.origin, REQUEST)
  await assert.rejects(http.post(receiver.origin, { ...REQUEST, signal: stop.signal }), (error) => error === reason)
  http.close()
})
