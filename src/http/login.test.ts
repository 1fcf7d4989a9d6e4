import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { bill, ORIGIN, stageOn, storeOf } from '../../test/fixtures/admin.ts'
import { TestClock } from '../testing/test-clock.ts'
import type { AdminOptions } from './context.ts'
import { ROUTES } from './contract/index.ts'
import type { RouteSpec } from './contract/route.ts'
import { IDLE_MS_MAX } from './sessions.ts'

const VERA = { token: 'vera-token-0123456789', role: 'viewer', who: 'vera' } as const
const OTTO = { token: 'otto-token-0123456789', role: 'operator', who: 'otto' } as const
const HOUR_MS = 3_600_000

type Sent = Readonly<Record<string, string>>

async function start(t: TestContext, options: AdminOptions = {}) {
  const stage = await stageOn(t, 'memory:', { tokens: [VERA, OTTO], ...options })
  const { basePath = '' } = options
  const post = (path: string, body: unknown, headers: Sent = { origin: ORIGIN }) =>
    stage.raw(`${basePath}/api/v1/${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    })
  /** The cookie, as a browser sends it back. */
  const login = async (given: object, headers: Sent = { origin: ORIGIN }) => {
    const response = await post('login', given, headers)
    assert.equal(response.status, 204, await response.clone().text())
    return cookieOf(response)
  }
  const session = async (headers: Sent) => {
    const response = await stage.raw(`${basePath}/api/v1/session`, { headers })
    return { status: response.status, ...JSON.parse(await response.text()) }
  }
  return { ...stage, post, login, session }
}

function cookieOf(response: Response): string {
  return response.headers.getSetCookie()[0]?.split(';')[0] ?? assert.fail('no cookie')
}

test('a login is a cookie that no script reads, no other site sends, and the token is not in', async (t) => {
  const given = { token: OTTO.token }
  const mounted = '/deep/admin'
  for (const [basePath, headers, expected] of [
    ['', { origin: ORIGIN }, /^millrace-7420=[\w.-]+; Path=\/; HttpOnly; SameSite=Strict$/],
    ['', { origin: ORIGIN, host: '127.0.0.1:7420' }, /^millrace-7420=[\w.-]+; Path=\/; HttpOnly; SameSite=Strict$/],
    [mounted, { origin: ORIGIN }, /^millrace-7420=[\w.-]+; Path=\/deep\/admin; HttpOnly; SameSite=Strict$/],
    [
      '',
      { origin: 'https://jobs.example', host: 'jobs.example' },
      /^__Host-millrace=[\w.-]+; Path=\/; HttpOnly; SameSite=Strict; Secure$/,
    ],
    [
      mounted,
      { 'sec-fetch-site': 'same-origin', 'x-forwarded-proto': 'https', host: 'jobs.example' },
      /^__Secure-millrace=[\w.-]+; Path=\/deep\/admin; HttpOnly; SameSite=Strict; Secure$/,
    ],
  ] as const) {
    const { post, session } = await start(t, { basePath })
    const response = await post('login', given, headers)
    const [cookie = ''] = response.headers.getSetCookie()
    assert.match(cookie, expected)
    const plain = Buffer.from(cookie.split(/[=.]/)[1] ?? '', 'base64url').toString()
    assert.ok(!`${cookie}${plain}`.includes(OTTO.token))
    assert.deepEqual([response.status, response.headers.get('cache-control')], [204, 'no-store'])
    const { who, role, by } = await session({ ...headers, cookie: `a=b; ${cookieOf(response)}; c=d=e` })
    assert.deepEqual([who, role, by], ['otto', 'operator', 'login'])
  }
})

test('over https only the cookie that came over https counts', async (t) => {
  const { login, session } = await start(t)
  const host = { host: 'jobs.example' }
  const plain = await login({ token: OTTO.token }, { ...host, origin: 'http://jobs.example' })
  const secure = await login({ token: VERA.token }, { ...host, origin: 'https://jobs.example' })
  assert.equal((await session({ ...host, cookie: plain, 'x-forwarded-proto': 'https' })).status, 401)
  for (const cookie of [`${plain}; ${secure}`, `${secure}; ${plain}`]) {
    assert.equal((await session({ ...host, cookie })).who, 'vera', 'a proxy need not say that it was https')
  }
})

test('every act with a cookie must come from the own page, and a bearer token needs no page', async (t) => {
  const { mill, raw, login } = await start(t)
  const cookie = await login({ token: OTTO.token })
  await mill.enqueue(bill, { n: 1 })
  const before = await storeOf(mill)
  const act = (headers: Sent) =>
    raw('/api/v1/queues/bill/pause', {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: '{}',
    })
  for (const headers of [
    {},
    { origin: 'null' },
    { origin: 'https://evil.example' },
    { origin: 'http://127.0.0.1:9999' },
    { 'sec-fetch-site': 'none' },
    { 'sec-fetch-site': 'same-site' },
    { 'sec-fetch-site': 'cross-site', origin: ORIGIN },
    { 'sec-fetch-site': 'same-origin', origin: 'https://evil.example' },
  ] as const) {
    const response = await act({ cookie, ...headers })
    assert.equal(response.status, 403, JSON.stringify(headers))
    assert.equal(JSON.parse(await response.text()).code, 'ERR_ORIGIN_REFUSED')
  }
  for (const { method, path } of Object.values<RouteSpec>(ROUTES).filter((spec) => spec.method !== 'get')) {
    const response = await raw(path, { method: method.toUpperCase(), headers: { cookie } })
    assert.equal(response.status, 403, path)
  }
  assert.deepEqual(await storeOf(mill), before)
  for (const headers of [
    { cookie, origin: ORIGIN },
    { cookie, 'sec-fetch-site': 'same-origin' },
    { authorization: `Bearer ${OTTO.token}` },
    // A proxy's own login is not ours.
    { cookie, origin: ORIGIN, authorization: 'Basic b3R0bzpvdHRv' },
  ]) {
    assert.equal((await act(headers)).status, 200, JSON.stringify(headers))
  }
  assert.equal((await act({ cookie, origin: ORIGIN, authorization: `Bearer ${OTTO.token}x` })).status, 401)
  const { items } = JSON.parse(await (await raw('/api/v1/audit', { headers: { cookie } })).text())
  assert.deepEqual(new Set(items.map(({ who }: { who: string }) => who)), new Set(['otto']))
})

test('a wrong token is refused, and after ten of them every login from there for a minute', async (t) => {
  const clock = new TestClock()
  let peer = '10.0.0.1'
  const { post, login, lines, session } = await start(t, { clock, peer: () => peer })
  const cookie = await login({ token: OTTO.token })
  const status = async (given: object) => (await post('login', given)).status
  const wrong = ['x', `${OTTO.token}x`, OTTO.token.slice(1), 'a\u2013b', OTTO.who]
  for (const token of [...wrong, ...wrong]) assert.equal(await status({ token }), 401, token)
  const refused = await post('login', { token: OTTO.token })
  assert.deepEqual([refused.status, refused.headers.get('retry-after')], [429, '60'])
  assert.equal(JSON.parse(await refused.text()).code, 'ERR_TOO_MANY_LOGINS')
  assert.deepEqual(refused.headers.getSetCookie(), [])
  assert.equal(await status({ link: 'x' }), 429)
  // Those who are in stay in, and others are not locked out.
  assert.equal((await session({ cookie })).status, 200)
  peer = '10.0.0.2'
  assert.equal(await status({ token: OTTO.token }), 204)
  peer = '10.0.0.1'
  await clock.advance('60s')
  assert.equal(await status({ token: OTTO.token }), 204)
  for (const body of [{}, { token: 7 }, { token: '' }, { token: OTTO.token, link: 'x' }, []]) {
    assert.equal(await status(body), 400, JSON.stringify(body))
  }
  assert.ok(!JSON.stringify(lines).includes(OTTO.token))
})

test('a page of another site can log nobody in or out', async (t) => {
  const { post, login, session } = await start(t)
  const cookie = await login({ token: OTTO.token })
  for (const headers of [{}, { origin: 'https://evil.example' }, { 'sec-fetch-site': 'same-site' }]) {
    assert.equal((await post('login', { token: OTTO.token }, headers)).status, 403)
    assert.equal((await post('logout', {}, { cookie, ...headers })).status, 403)
  }
  assert.equal((await session({ cookie })).status, 200)
})

test('logging out removes the cookie, and its value lets nobody in any more', async (t) => {
  const { post, login, session } = await start(t)
  const [cookie, other] = [await login({ token: OTTO.token }), await login({ token: OTTO.token })]
  const response = await post('logout', {}, { cookie, origin: ORIGIN })
  assert.equal(response.status, 204)
  assert.deepEqual(response.headers.getSetCookie(), ['millrace-7420=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0'])
  assert.deepEqual([(await session({ cookie })).status, (await session({ cookie: other })).status], [401, 200])
  assert.equal((await post('logout', {})).status, 204)
})

test('a login that is used is renewed, and its event stream ends with it', async (t) => {
  const clock = new TestClock()
  const { raw, login, session } = await start(t, { clock })
  const cookie = await login({ token: VERA.token })
  const ask = (headers: Sent) => raw('/api/v1/session', { headers })
  assert.deepEqual((await ask({ cookie })).headers.getSetCookie(), [])
  const stream = (await raw('/api/v1/events', { headers: { cookie } })).body?.getReader() ?? assert.fail()
  const ended = (async () => {
    for (;;) if ((await stream.read()).done) return true
  })()
  clock.step(IDLE_MS_MAX - HOUR_MS)
  const renewed = cookieOf(await ask({ cookie }))
  clock.step(HOUR_MS)
  assert.deepEqual([(await session({ cookie })).status, (await session({ cookie: renewed })).status], [401, 200])
  await clock.advance('15s')
  assert.equal(await ended, true)
})

test('a read-only link lets its holder look and not act, until its time, and its making is in the audit', async (t) => {
  const clock = new TestClock()
  const { post, login, session, raw, admin, mill } = await start(t, { clock })
  const cookie = await login({ token: OTTO.token })
  const viewer = { cookie: await login({ token: VERA.token }), origin: ORIGIN }
  assert.equal((await post('links', {}, viewer)).status, 403)
  for (const forMs of [0, 59_999, 30 * 24 * HOUR_MS + 1, 1.5e6 + 0.5]) {
    assert.equal((await post('links', { forMs }, { cookie, origin: ORIGIN })).status, 400, String(forMs))
  }
  const made = await post('links', { reason: 'for the auditors' }, { cookie, origin: ORIGIN })
  const { path, untilMs } = JSON.parse(await made.text())
  assert.deepEqual([made.status, untilMs], [201, clock.nowMs() + 24 * HOUR_MS])
  const [, link] = /^\/#\/\?link=([\w.-]+)$/.exec(path) ?? assert.fail(path)
  const held = await login({ link })
  const { who, role, by, untilMs: shown } = await session({ cookie: held })
  assert.deepEqual([who, role, by, shown], ['link of otto', 'viewer', 'link', untilMs])
  const acted = await post('queues/bill/pause', {}, { cookie: held, origin: ORIGIN })
  assert.equal(acted.status, 403)
  assert.equal((await post('links', {}, { cookie: held, origin: ORIGIN })).status, 403)
  assert.equal((await raw('/api/v1/audit', { headers: { cookie: held } })).status, 200)
  const entries = (await mill.engine.deadLetters?.audit({ limit: 10 })) ?? []
  assert.deepEqual(
    entries.map((one) => [one.who, one.action, one.reason, one.subject, one.after]),
    [['otto', 'link', 'for the auditors', `until ${new Date(untilMs).toISOString()}`, { untilMs }]],
  )
  // It is for pages: a program has no use for it.
  const bearer = new Request(`${ORIGIN}/api/v1/session`, { headers: { authorization: `Bearer ${link}` } })
  assert.equal((await admin.fetch(bearer)).status, 401)
  clock.step(24 * HOUR_MS)
  assert.equal((await session({ cookie: held })).status, 401)
  assert.equal((await post('login', { link })).status, 401)
})

test('without tokens there is nothing to log in to, and a link would let nobody in', async (t) => {
  const { post, session } = await start(t, Object({ tokens: undefined }))
  assert.deepEqual([(await session({})).by, (await session({})).untilMs], ['machine', null])
  for (const [path, body] of [
    ['login', { token: OTTO.token }],
    ['links', {}],
  ] as const) {
    const response = await post(path, body)
    assert.deepEqual([response.status, JSON.parse(await response.text()).code], [409, 'ERR_NO_TOKENS'])
  }
})

test('both paths take only POST', async (t) => {
  const { raw } = await start(t)
  for (const path of ['/api/v1/login', '/api/v1/logout']) {
    const response = await raw(path)
    assert.deepEqual([response.status, response.headers.get('allow')], [405, 'POST, OPTIONS'])
  }
})
