import assert from 'node:assert/strict'
import { test } from 'node:test'
import { bill, ORIGIN, stageOn, storeOf } from '../../test/fixtures/admin.ts'
import { isLoopbackAddress, isLoopbackHost } from './guards.ts'
import { BODY_BYTES_MAX } from './routing.ts'

const JSON_TYPE = { 'content-type': 'application/json' }
const job = JSON.stringify({ type: 'bill', payload: { n: 1 } })
const post = (headers: Record<string, string>, body = job) => ({
  method: 'POST',
  headers: { ...JSON_TYPE, ...headers },
  body,
})
const codeOf = async (response: Response) => [response.status, JSON.parse(await response.text()).code]

test('a page of another origin cannot write, with tokens or without', async (t) => {
  const token = 'operator-token-0123456789'
  const tokens = [{ token, role: 'operator', who: 'ann' }] as const
  for (const [stage, own] of [
    [await stageOn(t, 'memory:'), {}],
    [await stageOn(t, 'memory:', { tokens }), { authorization: `Bearer ${token}` }],
  ] as const) {
    const { raw, mill } = stage
    const before = await storeOf(mill)
    for (const foreign of [
      { origin: 'https://evil.example' },
      { origin: 'null' },
      { origin: 'http://127.0.0.1:9999' },
      { origin: 'http://localhost:7420' },
      { 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'same-site' },
      { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site', 'content-type': 'text/plain' },
    ]) {
      const refused = await raw('/api/v1/jobs', post({ ...own, ...foreign }))
      assert.deepEqual(await codeOf(refused), [403, 'ERR_ORIGIN_REFUSED'], JSON.stringify(foreign))
      const deleted = await raw('/api/v1/operations/x', { method: 'DELETE', headers: { ...own, ...foreign } })
      assert.equal(deleted.status, 403)
    }
    assert.deepEqual(await storeOf(mill), before)
    for (const home of [
      {},
      { origin: ORIGIN },
      { origin: ORIGIN, 'sec-fetch-site': 'same-origin' },
      { 'sec-fetch-site': 'none' },
    ]) {
      assert.equal((await raw('/api/v1/jobs', post({ ...own, ...home }))).status, 201, JSON.stringify(home))
    }
  }
})

test('a page of another origin cannot open event streams or make the server work, and a link to the dashboard still opens', async (t) => {
  const token = 'viewer-token-0123456789'
  const tokens = [{ token, role: 'viewer', who: 'ann' }] as const
  const link = { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' }
  for (const [{ raw }, own] of [
    [await stageOn(t, 'memory:'), {}],
    [await stageOn(t, 'memory:', { tokens }), { authorization: `Bearer ${token}` }],
  ] as const) {
    for (const foreign of [
      { origin: 'https://evil.example' },
      { origin: 'null' },
      { 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'same-site', 'sec-fetch-mode': 'cors' },
      { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'iframe' },
    ]) {
      for (const path of [
        ...['/api/v1/events', '/api/v1/dead-letters/groups', '/internal/v1/webhooks'],
        ...['/metrics', '/health', '/openapi.json', '/'],
      ]) {
        const refused = await raw(path, { headers: { ...own, ...foreign } })
        assert.equal(refused.status, 403, `${path} ${JSON.stringify(foreign)}`)
        assert.deepEqual(await codeOf(refused), [403, 'ERR_ORIGIN_REFUSED'])
      }
    }
    // A tab that a foreign page opens would hold a stream as well.
    assert.equal((await raw('/api/v1/events', { headers: { ...own, ...link } })).status, 403)
    assert.equal((await raw('/', { headers: link })).status, 200)
    assert.equal((await raw('/api/v1/session', { headers: { ...own, ...link } })).status, 200)
    for (const home of [{}, { 'sec-fetch-site': 'same-origin' }, { origin: ORIGIN }]) {
      const stream = await raw('/api/v1/events', { headers: { ...own, ...home } })
      await stream.body?.cancel()
      assert.equal(stream.status, 200, JSON.stringify(home))
    }
  }
})

test('no answer lets a page of another origin read it', async (t) => {
  const { raw } = await stageOn(t, 'memory:')
  const preflight = {
    method: 'OPTIONS',
    headers: { origin: 'https://evil.example', 'access-control-request-method': 'POST' },
  }
  for (const response of [await raw('/api/v1/jobs', preflight), await raw('/api/v1/jobs')]) {
    assert.deepEqual(
      [...response.headers.keys()].filter((name) => name.startsWith('access-control')),
      [],
    )
    assert.equal(response.headers.get('cross-origin-resource-policy'), 'same-origin')
  }
})

test('a name that was made to point here is refused', async (t) => {
  const { raw } = await stageOn(t, 'memory:', { hosts: ['Queue.example.com'] })
  for (const host of [
    'evil.example',
    'evil.example:7420',
    'localhost.evil.example',
    '127.0.0.1.evil.example',
    '192.168.0.7',
    '',
  ]) {
    for (const path of ['/api/v1/jobs', '/health', '/metrics', '/', '/openapi.json', '/api/v1/events']) {
      const refused = await raw(path, { headers: { host } })
      assert.deepEqual(await codeOf(refused), [403, 'ERR_HOST_REFUSED'], `${host}${path}`)
    }
    assert.equal((await raw('/api/v1/jobs', post({ host, origin: `http://${host}` }))).status, 403)
  }
  for (const host of [
    'localhost',
    'LOCALHOST:7420',
    '127.0.0.1:1',
    '[::1]:7420',
    'queue.example.com',
    'queue.example.com:443',
  ]) {
    assert.equal((await raw('/api/v1/jobs', { headers: { host } })).status, 200, host)
  }
})

test('without tokens only this machine is answered, and no proxy on it', async (t) => {
  let peer: string | null = null
  const { raw, mill } = await stageOn(t, 'memory:', { peer: () => peer })
  await mill.enqueue(bill, { n: 1 })
  const before = await storeOf(mill)
  for (const elsewhere of [null, '', '10.0.0.7', '::ffff:10.0.0.7', 'fe80::1', '1127.0.0.1', '128.0.0.1']) {
    peer = elsewhere
    for (const path of ['/api/v1/session', '/health', '/metrics', '/', '/openapi.json', '/api/v1/events']) {
      assert.deepEqual(await codeOf(await raw(path)), [403, 'ERR_FORBIDDEN'], `${elsewhere} ${path}`)
    }
    assert.equal((await raw('/api/v1/jobs', post({}))).status, 403)
  }
  for (const near of ['127.0.0.1', '127.8.9.1', '::1', '::ffff:127.0.0.1']) {
    peer = near
    assert.equal((await raw('/api/v1/session')).status, 200, near)
    for (const name of ['x-forwarded-for', 'forwarded', 'x-real-ip']) {
      assert.equal((await raw('/api/v1/jobs', post({ [name]: '127.0.0.1' }))).status, 403, name)
    }
  }
  assert.deepEqual(await storeOf(mill), before)
})

test('with tokens a caller may come from anywhere', async (t) => {
  const token = 'viewer-token-0123456789'
  const { raw } = await stageOn(t, 'memory:', {
    tokens: [{ token, role: 'viewer', who: 'ann' }],
    peer: () => '10.0.0.7',
  })
  const headers = { host: 'queue.example.com', 'x-forwarded-for': '10.0.0.8', authorization: `Bearer ${token}` }
  assert.equal((await raw('/api/v1/jobs', { headers })).status, 200)
})

test('a server without tokens does not listen where others reach it', async (t) => {
  const { admin } = await stageOn(t, 'memory:')
  for (const host of ['0.0.0.0', '::', '10.0.0.7', 'queue.example.com']) {
    await assert.rejects(admin.listen({ host, port: 0 }), { code: 'ERR_OPTION_INVALID' })
  }
})

test('a write takes JSON of a bounded size', async (t) => {
  const { raw, mill } = await stageOn(t, 'memory:')
  const before = await storeOf(mill)
  const refusals: readonly (readonly [RequestInit, number])[] = [
    [post({ 'content-type': 'text/plain' }), 415],
    [post({ 'content-type': 'application/x-www-form-urlencoded' }), 415],
    [{ method: 'POST', body: job }, 415],
    [post({}, '{"type":'), 400],
    [post({}, '[]'), 400],
    [post({}, 'null'), 400],
    [post({}, ''), 400],
    [post({}, JSON.stringify({ type: 'bill', payload: { n: 1 }, extra: 1 })), 400],
    [post({}, `{"type":"mail","payload":${'['.repeat(100_000)}${']'.repeat(100_000)}}`), 400],
    [post({}, JSON.stringify({ type: 'mail', payload: 'x'.repeat(1_100_000) })), 413],
    [post({}, JSON.stringify({ type: 'mail', payload: 'x'.repeat(BODY_BYTES_MAX) })), 413],
    [post({}, JSON.stringify({ type: 'mail', payload: 1, reason: 'a\u0000b' })), 400],
    [post({}, '{"type":"mail","payload":1,"reason":"\\ud800"}'), 400],
  ]
  for (const [init, status] of refusals) {
    const response = await raw('/api/v1/jobs', init)
    assert.equal(response.status, status, String(init.body).slice(0, 80))
  }
  assert.deepEqual(await storeOf(mill), before)
})

test('a stream of a body is cut at the limit, whatever its length was said to be', async (t) => {
  const { admin } = await stageOn(t, 'memory:')
  let pulled = 0
  const body = new ReadableStream<Uint8Array>({
    pull: (controller) => {
      pulled += 1
      controller.enqueue(new Uint8Array(65_536).fill(32))
    },
  })
  const request = new Request(`${ORIGIN}/api/v1/jobs`, { method: 'POST', headers: JSON_TYPE, body, duplex: 'half' })
  assert.equal((await admin.fetch(request)).status, 413)
  assert.ok(pulled < 50, `${pulled} chunks`)
})

test('every answer has the headers that bound what a page may do', async (t) => {
  const { raw } = await stageOn(t, 'memory:')
  for (const path of ['/', '/api/v1/jobs', '/api/v1/nope', '/health', '/api/v1/jobs?limit=x']) {
    const { headers } = await raw(path)
    const policy = headers.get('content-security-policy') ?? ''
    assert.match(policy, /default-src 'none'/)
    assert.doesNotMatch(policy, /unsafe|\*|https?:/)
    assert.match(policy, /frame-ancestors 'none'/)
    assert.equal(headers.get('x-content-type-options'), 'nosniff')
  }
  assert.equal((await raw('/api/v1/jobs')).headers.get('cache-control'), 'no-store')
})

test('methods and paths that are not there are told as problems', async (t) => {
  const { raw } = await stageOn(t, 'memory:')
  const put = await raw('/api/v1/jobs', { method: 'PUT' })
  assert.deepEqual([put.status, put.headers.get('allow')], [405, 'GET, POST, HEAD, OPTIONS'])
  assert.deepEqual(await codeOf(put), [405, 'ERR_METHOD_REFUSED'])
  const options = await raw('/api/v1/jobs/x', { method: 'OPTIONS' })
  assert.deepEqual([options.status, options.headers.get('allow')], [204, 'GET, HEAD, OPTIONS'])
  for (const path of [
    '/api',
    '/api/v1',
    '/api/v2/jobs',
    '/api/v1/jobs/',
    '/api/v1/jobs/a/b/c',
    '/internal/x',
    '/nope.js',
  ]) {
    assert.deepEqual(await codeOf(await raw(path)), [404, 'ERR_ROUTE_UNKNOWN'], path)
  }
  const head = await raw('/api/v1/jobs', { method: 'HEAD' })
  assert.deepEqual([head.status, await head.text()], [200, ''])
})

test('what nobody foresaw is answered with an id, and logged under it', async (t) => {
  const sampler = {
    engine: {},
    stepMs: 1,
    overview: () => Promise.reject(new Error('secret inside')),
    subscribe: () => () => {},
  }
  const broken = { ...sampler, counts: sampler.overview, points: () => [], close: () => {} }
  // A sampler that fails in a way that no real one does.
  const { raw, lines } = await stageOn(t, 'memory:', { sampler: broken as never })
  const response = await raw('/api/v1/overview')
  const body = JSON.parse(await response.text())
  assert.deepEqual([response.status, body.code], [500, 'ERR_INTERNAL'])
  assert.doesNotMatch(JSON.stringify(body), /secret inside|at /)
  const id = /[0-9a-f-]{36}/.exec(body.message)?.[0]
  assert.ok(lines.some(({ fields }) => fields?.error_id === id && fields?.error === 'secret inside'))
})

test('addresses and names of this machine', () => {
  for (const address of ['127.0.0.1', '127.255.0.3', '::1', '::ffff:127.0.0.1']) assert.ok(isLoopbackAddress(address))
  for (const address of ['0.0.0.0', '::', '127.0.0.1.evil', '12.0.0.1', '::ffff:10.0.0.1', '']) {
    assert.ok(!isLoopbackAddress(address), address)
  }
  assert.ok(isLoopbackHost('localhost') && isLoopbackHost('[::1]'))
  assert.ok(!isLoopbackHost('localhost.evil.example'))
})
