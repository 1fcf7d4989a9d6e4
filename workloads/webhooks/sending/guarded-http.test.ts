import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { fieldOf, isMillraceError } from '../../../src/errors.ts'
import { isRetryable } from '../../../src/job/policy.ts'
import { systemClock } from '../../../src/time/clock.ts'
import { status, type WebhookReceiver, webhookReceiver } from '../../../test/fixtures/webhook-receiver.ts'
import { rebindingDns } from '../../../test/servers/rebinding-dns.ts'
import { HTTP_TIMEOUT_MS } from '../dispatch-worker.ts'
import { guardedHttp, RESPONSE_BYTES_MAX } from './guarded-http.ts'

const REQUEST = { body: '{"a":1}', headers: { 'content-type': 'application/json' }, timeout: 5_000 }

describe('the guarded client', () => {
  let receiver: WebhookReceiver
  before(async () => {
    receiver = await webhookReceiver()
  })
  after(() => receiver.close())

  const client = () => guardedHttp({ allow: [receiver.origin] })
  const send = (request: Partial<typeof REQUEST> & { signal?: AbortSignal } = {}) =>
    client().post(`${receiver.origin}/hooks/secret-path?token=secret`, { ...REQUEST, ...request })

  test('posts the body and returns status, body and headers', async () => {
    receiver.answer(status(201, 'made', { 'retry-after': '5' }))
    const response = await send()
    assert.deepEqual([response.status, response.data, response.headers?.['retry-after']], [201, 'made', '5'])
    const { method, body, headers } = receiver.requests.at(-1) ?? {}
    assert.deepEqual([method, body, headers?.['content-type']], ['POST', '{"a":1}', 'application/json'])
  })

  // X048
  test('a redirect to loopback is not followed', async () => {
    await using inner = await webhookReceiver()
    for (const code of [301, 302, 303, 307, 308]) {
      receiver.answer(status(code, '', { location: `${inner.origin}/admin` }))
      assert.equal((await send()).status, code)
    }
    assert.equal(inner.requests.length, 0)
  })

  // A117
  test('a receiver that hangs fails at the deadline', async () => {
    assert.equal(HTTP_TIMEOUT_MS, 10_000)
    receiver.answer(() => {})
    const startedMs = systemClock.monotonicMs()
    const error = await send({ timeout: 300 }).catch((thrown: unknown) => thrown)
    const tookMs = systemClock.monotonicMs() - startedMs
    assert.equal(fieldOf(error, 'name'), 'TimeoutError')
    assert.equal(isRetryable(error), true)
    // It would hang for ever.
    assert.ok(tookMs > 250 && tookMs < 30_000, `${tookMs} ms`)
  })

  test('headers that drip do not move the deadline', async () => {
    const sockets: Socket[] = []
    const server = createServer((socket) => {
      sockets.push(socket)
      let sent = 0
      const text = 'HTTP/1.1 200 OK\r\nX-Slow: '
      const drip = (): void => {
        if (socket.destroyed) return
        socket.write(text[sent] ?? 'x')
        sent += 1
        void systemClock.sleep(20).then(drip)
      }
      socket.on('error', () => {})
      drip()
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const origin = `http://127.0.0.1:${Object(server.address()).port}`
    const error = await guardedHttp({ allow: [origin] })
      .post(origin, { ...REQUEST, timeout: 300 })
      .catch((thrown: unknown) => thrown)
    assert.equal(fieldOf(error, 'name'), 'TimeoutError')
    for (const socket of sockets) socket.destroy()
    server.close()
  })

  test('a body that drips is cut at the deadline; the status counts', async () => {
    receiver.answer((response) => {
      response.writeHead(200)
      const drip = (): void => {
        if (response.destroyed) return
        response.write('x')
        void systemClock.sleep(20).then(drip)
      }
      drip()
    })
    const startedMs = systemClock.monotonicMs()
    // The headers must come in time, also on a busy machine.
    const { status: code, data } = await send({ timeout: 2_000 })
    assert.equal(code, 200)
    assert.match(String(data), /^x+$/)
    assert.ok(systemClock.monotonicMs() - startedMs < 30_000)
  })

  test('an endless body is cut, and the connection closed', async () => {
    let written = 0
    const closed = new Promise<void>((resolve) => {
      receiver.answer((response) => {
        response.writeHead(200)
        response.on('close', resolve)
        const chunk = 'y'.repeat(65_536)
        const flood = (): void => {
          while (!response.destroyed && written < 10 * 1024 ** 3) {
            written += chunk.length
            if (!response.write(chunk)) return void response.once('drain', flood)
          }
        }
        flood()
      })
    })
    const { status: code, data } = await send()
    assert.deepEqual([code, String(data).length], [200, RESPONSE_BYTES_MAX])
    await closed
    assert.ok(written < 50 * 1024 ** 2, `${written} bytes were written`)
  })

  test('a switch to another protocol is an answer like any other', async () => {
    receiver.answer((response) => {
      response.socket?.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\nhello')
    })
    const { status: code } = await send()
    assert.equal(code, 101)
  })

  test('a reset is an error to retry, with the host and without path, query and body', async () => {
    receiver.answer((response) => void response.socket?.resetAndDestroy())
    const error = await send().catch((thrown: unknown) => thrown)
    assert.equal(isRetryable(error), true)
    const text = String(fieldOf(error, 'message'))
    assert.equal(text, `the connection to 127.0.0.1:${receiver.port} failed (ECONNRESET)`)
  })

  test('a body that breaks off does not undo the status', async () => {
    receiver.answer((response) => {
      response.writeHead(200, { 'content-length': '100' })
      response.write('half')
      // Once the start has been sent.
      setImmediate(() => response.socket?.resetAndDestroy())
    })
    const { status: code } = await send()
    assert.equal(code, 200)
  })

  test('nobody listening is an error to retry', async () => {
    const gone = await webhookReceiver()
    await gone.close()
    const error = await guardedHttp({ allow: [gone.origin] })
      .post(gone.origin, REQUEST)
      .catch((thrown: unknown) => thrown)
    assert.equal(fieldOf(error, 'code'), 'ECONNREFUSED')
    assert.equal(isRetryable(error), true)
  })

  test('an abort ends the request with its reason', async () => {
    receiver.answer(() => {})
    const stop = new AbortController()
    const reason = new Error('the worker stops')
    const sent = send({ signal: stop.signal })
    while (receiver.requests.length === 0) await systemClock.sleep(1)
    stop.abort(reason)
    await assert.rejects(sent, (error) => error === reason)
  })

  test('neither proxies of the environment nor cookies are used', async () => {
    await using proxy = await webhookReceiver()
    receiver.answer(status(200, '', { 'set-cookie': 'session=1' }))
    process.env.HTTP_PROXY = proxy.origin
    process.env.http_proxy = proxy.origin
    const http = client()
    await http.post(receiver.origin, REQUEST)
    await http.post(receiver.origin, REQUEST)
    delete process.env.HTTP_PROXY
    delete process.env.http_proxy
    assert.equal(proxy.requests.length, 0)
    assert.equal(receiver.requests.at(-1)?.headers.cookie, undefined)
    http.close()
  })
})

// X048
test('a DNS server that answers with a public address and then with loopback never reaches an internal receiver', async () => {
  await using receiver = await webhookReceiver()
  await using dns = await rebindingDns(['93.184.216.34', '127.0.0.1'])
  const url = `https://rebind.example:${receiver.port}/`
  const stop = new AbortController()
  const left = new Error('the test does not connect to other machines')
  const http = guardedHttp({
    resolve: async (hostname) => {
      const addresses = await dns.resolve(hostname)
      // The public address passes the check, and the request ends before a packet is sent there.
      if (addresses.includes('93.184.216.34')) stop.abort(left)
      return addresses
    },
  })
  await assert.rejects(http.post(url, { ...REQUEST, signal: stop.signal }), (error) => error === left)
  for (let round = 0; round < 3; round += 1) {
    await assert.rejects(http.post(url, REQUEST), /resolves to an address that is not public/)
  }
  assert.equal(dns.asked.length, 4)
  assert.equal(receiver.requests.length, 0)
})

// X048
test('the connection goes to the address that was checked: a name is resolved once, whatever DNS says next', async () => {
  await using checked = await webhookReceiver()
  await using other = await webhookReceiver({ host: '127.0.0.2', port: checked.port })
  await using dns = await rebindingDns(['127.0.0.1', '127.0.0.2'])
  const origin = `http://rebind.example:${checked.port}`
  const http = guardedHttp({ allow: [origin], resolve: dns.resolve })
  assert.equal((await http.post(origin, REQUEST)).status, 200)
  assert.deepEqual([dns.asked.length, checked.requests.length, other.requests.length], [1, 1, 0])
  http.close()
})

// X048
test('one private address among public ones is enough to refuse', async () => {
  const http = guardedHttp({ resolve: async () => ['8.8.8.8', '10.0.0.1'] })
  await assert.rejects(http.post('https://mixed.example/', REQUEST), (error) =>
    isMillraceError(error, 'ERR_NON_RETRYABLE'),
  )
})

test('a DNS server that never answers is bounded by the same deadline', async () => {
  await using dns = await rebindingDns([null])
  const startedMs = systemClock.monotonicMs()
  const error = await guardedHttp({ resolve: dns.resolve })
    .post('https://mute.example/', { ...REQUEST, timeout: 300 })
    .catch((thrown: unknown) => thrown)
  assert.equal(fieldOf(error, 'name'), 'TimeoutError')
  // The resolver itself would wait for 30 s.
  assert.ok(systemClock.monotonicMs() - startedMs < 25_000)
})

describe('https', () => {
  let folder: string
  let tls: { readonly key: string; readonly cert: string }
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'millrace-tls-'))
    const files = ['-keyout', join(folder, 'key.pem'), '-out', join(folder, 'cert.pem')]
    const subject = ['-subj', '/CN=hooks.example', '-addext', 'subjectAltName=DNS:hooks.example']
    const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2']
    execFileSync('openssl', ['req', '-x509', ...key, ...files, ...subject], { stdio: 'ignore' })
    tls = { key: readFileSync(join(folder, 'key.pem'), 'utf8'), cert: readFileSync(join(folder, 'cert.pem'), 'utf8') }
  })
  after(() => rmSync(folder, { recursive: true, force: true }))

  test('the certificate must fit the name, though the connection goes to a checked address', async () => {
    await using receiver = await webhookReceiver({ tls })
    const origin = `https://hooks.example:${receiver.port}`
    const options = { allow: [origin], resolve: async () => ['127.0.0.1'] }
    const trusted = guardedHttp({ ...options, ca: tls.cert })
    assert.equal((await trusted.post(`${origin}/hooks`, REQUEST)).status, 200)
    assert.equal(receiver.requests[0]?.headers.host, `hooks.example:${receiver.port}`)
    const wrong = `https://other.example:${receiver.port}`
    const cases = [
      [guardedHttp(options), origin],
      [guardedHttp({ ...options, allow: [wrong], ca: tls.cert }), wrong],
    ] as const
    for (const [http, url] of cases) {
      await assert.rejects(http.post(url, REQUEST), (error) => isRetryable(error), url)
      http.close()
    }
    assert.equal(receiver.requests.length, 1)
    trusted.close()
  })
})
