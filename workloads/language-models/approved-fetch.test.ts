import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import { type AddressInfo, createServer as createTcpServer, type Socket } from 'node:net'
import { type TestContext, test } from 'node:test'
import { isMillraceError } from '../../src/errors.ts'
import type { Log } from '../../src/job/definition.ts'
import { decide } from '../../src/job/policy.ts'
import { approvedFetch } from './approved-fetch.ts'

const nothing = (): void => {}

interface Served {
  readonly url: string
  readonly port: number
  /** The paths that were asked for. */
  readonly asked: string[]
}

async function serve(t: TestContext, answer: RequestListener, host = '127.0.0.1'): Promise<Served> {
  const asked: string[] = []
  const server = createServer((request, response) => {
    asked.push(request.url ?? '')
    answer(request, response)
  })
  server.listen(0, host)
  await once(server, 'listening')
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  return { url: `http://${host.includes(':') ? `[${host}]` : host}:${port}`, port, asked }
}

const ok: RequestListener = (_request, response) => void response.end('ok')

const refusedWith = (host: string) => (error: unknown) =>
  isMillraceError(error, 'ERR_NON_RETRYABLE') && error.message.includes(host) && !/secret|query/.test(error.message)

// B196 X102
test('a request to another host, port or protocol is refused before it leaves, counted, and logged without its path', async (t) => {
  const allowed = await serve(t, ok)
  const other = await serve(t, ok)
  const lines: unknown[] = []
  const hosts: string[] = []
  const log: Log = {
    debug: nothing,
    info: nothing,
    warn: (text, fields) => void lines.push({ text, ...fields }),
    error: nothing,
  }
  const fetch = approvedFetch({ endpoints: [allowed.url], log, onRefused: (host) => void hosts.push(host) })
  assert.equal(await (await fetch(`${allowed.url}/any/path?query=1`)).text(), 'ok')
  assert.equal(await (await fetch(new Request(`${allowed.url}/request`))).text(), 'ok')

  const { port } = other
  const attempts = [
    [`${other.url}/secret?query=1`, `127.0.0.1:${port}`],
    [`http://localhost:${allowed.port}/secret`, `localhost:${allowed.port}`],
    [`https://127.0.0.1:${allowed.port}/secret`, `127.0.0.1:${allowed.port}`],
    [`http://127.0.0.1:${allowed.port}@127.0.0.1:${port}/secret`, `127.0.0.1:${port}`],
    [`http://user:secret@127.0.0.1:${allowed.port}/`, `127.0.0.1:${allowed.port}`],
    [`http://127.0.0.1:${allowed.port}\\@127.0.0.1:${port}/secret`, `127.0.0.1:${allowed.port}`],
    [`http://127.0.0.1.:${port}/secret`, `127.0.0.1:${port}`],
    [`http://127.0.0.1:${allowed.port}.example/secret`, 'an unknown host'],
    [`http://[::ffff:127.0.0.1]:${allowed.port}/secret`, `[::ffff:7f00:1]:${allowed.port}`],
    ['file:///secret', 'an unknown host'],
    ['data:text/plain,secret', 'an unknown host'],
    ['/secret', 'an unknown host'],
  ] as const
  const before = allowed.asked.length
  let passed = 0
  for (const [url, host] of attempts) {
    // A backslash ends the authority, so this one is a path of the allowed host: what the parser says is what is sent.
    if (url.includes('\\')) {
      await (await fetch(url)).text()
      passed += 1
      continue
    }
    await assert.rejects(fetch(url), refusedWith(host), url)
  }
  await assert.rejects(fetch(new Request(`${other.url}/secret`)), refusedWith(`127.0.0.1:${port}`))
  assert.deepEqual(other.asked, [])
  assert.equal(allowed.asked.length, before + passed)
  assert.equal(fetch.refused, attempts.length - passed + 1)
  assert.deepEqual(hosts.length, fetch.refused)
  assert.equal(lines.length, fetch.refused)
  assert.doesNotMatch(JSON.stringify(lines), /secret|query/)
  assert.deepEqual(lines[0], {
    text: 'Request refused',
    host: `127.0.0.1:${port}`,
    reason: 'it is not one of the configured endpoints',
  })
})

// B196
test('other spellings of the same endpoint are the same endpoint', async (t) => {
  const allowed = await serve(t, ok)
  const fetch = approvedFetch({ endpoints: [allowed.url] })
  for (const host of ['127.0.0.1', '127.1', '0x7f.0.0.1', '2130706433', '127.0.0.1.']) {
    assert.equal((await fetch(`HTTP://${host}:${allowed.port}/`)).status, 200, host)
  }
  const v6 = await serve(t, ok, '::1')
  const overV6 = approvedFetch({ endpoints: [v6.url] })
  assert.equal((await overV6(`http://[0:0:0:0:0:0:0:1]:${v6.port}/`)).status, 200)
  await assert.rejects(overV6(`http://[::2]:${v6.port}/`), refusedWith('[::2]'))
  // A name is compared as it stands: with a dot at its end it could be resolved differently.
  const named = approvedFetch({ endpoints: ['https://api.example.com'] })
  await assert.rejects(named('https://api.example.com./'), refusedWith('example'))
})

// B196
test('an endpoint with a path allows only what is below that path', async (t) => {
  const { url, asked } = await serve(t, ok)
  const fetch = approvedFetch({ endpoints: [`${url}/v1/`] })
  for (const path of ['/v1', '/v1/chat', '/v1?a=1', '/x/../v1/b']) await (await fetch(url + path)).text()
  const outside = ['/', '/v1x', '/v2/v1/', '/v1/../admin', '/v1/%2e%2e/admin', '/v1/..%2fadmin', '/v1/..%5Cadmin']
  for (const path of outside) await assert.rejects(fetch(url + path), { code: 'ERR_NON_RETRYABLE' }, path)
  assert.deepEqual(asked, ['/v1', '/v1/chat', '/v1?a=1', '/v1/b'])
})

// B196 X102
test('a redirect is not followed, neither to another host nor to the same one', async (t) => {
  const other = await serve(t, ok)
  const { url, asked } = await serve(t, (request, response) => {
    const location = request.url === '/away' ? `${other.url}/secret` : '/secret'
    response.writeHead(request.url === '/kept' ? 307 : 302, { location }).end()
  })
  const fetch = approvedFetch({ endpoints: [url] })
  for (const path of ['/away', '/same', '/kept']) {
    await assert.rejects(fetch(url + path, { method: 'POST', body: 'x', redirect: 'follow' }), refusedWith('127.0.0.1'))
  }
  assert.deepEqual(other.asked, [])
  assert.deepEqual(asked, ['/away', '/same', '/kept'])
  assert.equal(fetch.refused, 3)
})

test('an endpoint that is no http URL or has credentials is refused at once, without printing them', () => {
  for (const endpoint of ['ftp://a.example', 'nonsense', 'http://user:hidden@a.example', 'file:///etc']) {
    assert.throws(
      () => approvedFetch({ endpoints: [endpoint] }),
      (error) => isMillraceError(error, 'ERR_OPTION_INVALID') && !error.message.includes('hidden'),
      endpoint,
    )
  }
})

/** A server that resets every connection as soon as it has a request. */
async function resetting(t: TestContext): Promise<string> {
  const server = createTcpServer((socket: Socket) => {
    socket.on('error', nothing)
    socket.once('data', () => socket.resetAndDestroy())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => void server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** A port on which nothing listens. */
async function closedPort(): Promise<number> {
  const server = createTcpServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

// X101
test('without a connection the job is deferred for at most 60 s and no attempt is used', async (t) => {
  const port = await closedPort()
  const urls = [
    [`http://127.0.0.1:${port}`, /ECONNREFUSED/],
    [`http://localhost:${port}`, /ECONNREFUSED/],
    ['http://nowhere.invalid', /ENOTFOUND|EAI_AGAIN/],
    [await resetting(t), /ECONNRESET|UND_ERR_SOCKET/],
  ] as const
  for (const [url, code] of urls) {
    const error = await approvedFetch({ endpoints: [url] })(`${url}/secret`).catch((thrown: unknown) => thrown)
    assert.ok(isMillraceError(error, 'ERR_OFFLINE'), url)
    assert.match(error.message, code)
    assert.doesNotMatch(error.message, /secret/)
    // The last attempt, and still no dead letter.
    const failed = { attempt: 3, attempts: 3, backoff: { kind: 'fixed', delay: 0 }, error } as const
    assert.deepEqual(
      decide(failed, () => 0),
      { kind: 'release', delayMs: 60_000, reason: 'offline' },
    )
  }
})

test("an abort while it waits for an answer passes on the signal's reason", async (t) => {
  const abort = new AbortController()
  const { url } = await serve(t, () => abort.abort(new Error('the job timed out')))
  const fetch = approvedFetch({ endpoints: [url] })
  await assert.rejects(fetch(url, { signal: abort.signal }), { message: 'the job timed out' })
  await assert.rejects(fetch(new Request(url, { signal: abort.signal })), { message: 'the job timed out' })
  assert.equal(fetch.refused, 0)
})

test('an answer that is no HTTP is an ordinary failure', async (t) => {
  const server = createTcpServer((socket) => {
    socket.on('error', nothing)
    socket.once('data', () => socket.end('this is not HTTP\r\n\r\n'))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => void server.close())
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const error = await approvedFetch({ endpoints: [url] })(url).catch((thrown: unknown) => thrown)
  assert.equal(isMillraceError(error), false)
  assert.match(String(error), /the request to 127\.0\.0\.1:\d+ failed \(\w*Error\)/)
})
