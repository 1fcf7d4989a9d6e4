import assert from 'node:assert/strict'
import { test } from 'node:test'
import { bill, type Loose, stageOn, storeOf } from '../../test/fixtures/admin.ts'
import { open } from '../client/mill.ts'
import { createAdmin } from './admin.ts'
import { knownTokens, mayAct } from './auth.ts'
import { ROUTES } from './contract/index.ts'
import { ROLES, type RouteSpec } from './contract/route.ts'
import { routeIds } from './routing.ts'

const tokens = ROLES.map((role) => ({ role, who: `${role}-who`, token: `${role}-token-0123456789` }))
const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

/** A request that passes validation, or would if the thing were there. */
const REQUEST: Loose = {
  params: { id: 'none', type: 'none', name: 'none', topic: 'none', offset: '0' },
}

test('an empty list of tokens is refused: it would open the server to every user of the machine', async (t) => {
  const mill = await open('memory:')
  t.after(() => mill.close())
  assert.throws(() => createAdmin(mill, { tokens: [], page: null }), {
    code: 'ERR_OPTION_INVALID',
    message: /'tokens' is empty; .*leave it out/,
  })
  // From plain JavaScript, or from a configuration that was not found.
  for (const tokens of [null, '', 'a-token-of-some-length', {}, { token: 'a-token-of-some-length' }]) {
    assert.throws(() => createAdmin(mill, Object({ tokens, page: null })), {
      code: 'ERR_OPTION_INVALID',
      message: /'tokens' is not a list; .*leave it out/,
    })
  }
})

// B202
test('every route: 401 without a token or with a wrong one, 403 below its role, let in from its role on', async (t) => {
  const { send, mill } = await stageOn(t, 'memory:', { tokens })
  await mill.enqueue(bill, { n: 1 })
  const before = await storeOf(mill)
  const wrong = [
    {},
    bearer('x'),
    bearer(`${tokens[2]?.token}x`),
    { authorization: tokens[2]?.token ?? '' },
    { authorization: `Basic ${tokens[2]?.token}` },
    { 'x-millrace-who': 'admin' },
  ]
  for (const id of routeIds()) {
    const spec: RouteSpec = ROUTES[id]
    // No route accepts this body, so an authorized request gets no further.
    const request = { ...REQUEST, ...(spec.body !== undefined && { body: 7 }) }
    for (const headers of wrong) {
      const { status, body, headers: told } = await send(id, { ...request, headers })
      assert.deepEqual([status, body.code], [401, 'ERR_UNAUTHENTICATED'], `${id} with ${JSON.stringify(headers)}`)
      assert.match(told.get('www-authenticate') ?? '', /^Bearer/)
    }
    for (const { role, token } of tokens) {
      const { status, body } = await send(id, { ...request, headers: bearer(token) })
      const isAllowed = mayAct(role, spec.role)
      assert.equal(status === 401 || status === 403, !isAllowed, `${id} as ${role}: ${status}`)
      if (!isAllowed) assert.equal(body.code, 'ERR_FORBIDDEN')
    }
  }
  assert.deepEqual(await storeOf(mill), before)
})

test('roles that the table gives: looking is for all, acting for operators, deleting for admins', () => {
  for (const [id, { method, role }] of Object.entries<RouteSpec>(ROUTES)) {
    const isDeleting = ['purgeDeadLetters', 'eraseJobs', 'drainType', 'obliterateType'].includes(id)
    const expected = isDeleting ? 'admin' : method === 'get' ? 'viewer' : 'operator'
    assert.equal(role, expected, id)
  }
  assert.deepEqual(
    ROLES.map((role) => ROLES.map((needed) => mayAct(role, needed))),
    [
      [true, false, false],
      [true, true, false],
      [true, true, true],
    ],
  )
})

test("the audit has the token's name, whatever the request calls itself", async (t) => {
  const { ask } = await stageOn(t, 'memory:', { tokens })
  const headers = { ...bearer(tokens[1]?.token ?? ''), 'x-millrace-who': 'mallory' }
  await ask('pauseQueue', { params: { type: 'bill' }, headers })
  const { items } = await ask('listAudit', { headers })
  assert.deepEqual(
    items.map(({ who }) => who),
    ['operator-who'],
  )
})

test('health and metrics take a token too, unless they are public; the page takes none', async (t) => {
  const paths = ['/health', '/health/live', '/health/ready', '/metrics']
  const closed = await stageOn(t, 'memory:', { tokens })
  const open = await stageOn(t, 'memory:', { tokens, publicHealth: true })
  for (const path of paths) {
    assert.equal((await closed.raw(path)).status, 401, path)
    assert.notEqual((await closed.raw(path, { headers: bearer(tokens[0]?.token ?? '') })).status, 401, path)
    assert.notEqual((await open.raw(path)).status, 401, path)
  }
  for (const path of ['/openapi.json', '/api/v1/events']) assert.equal((await open.raw(path)).status, 401, path)
  assert.equal((await closed.raw('/')).status, 200)
})

test('a token is neither told nor logged', async (t) => {
  const { send, raw, lines, mill } = await stageOn(t, 'memory:', { tokens })
  const secret = tokens[2]?.token ?? ''
  const answers = [
    await send('showSession', { headers: bearer(secret) }),
    await send('listJobs', { query: { cursor: secret }, headers: bearer(secret) }),
    await send('showJob', { params: { id: 'x' }, headers: bearer(`${secret}x`) }),
  ].map((answer) => JSON.stringify(answer))
  await mill.close()
  answers.push(await (await raw('/api/v1/jobs', { headers: bearer(secret) })).text())
  for (const text of [...answers, JSON.stringify(lines)]) assert.ok(!text.includes(secret), text)
})

test('tokens that would protect nothing are refused, and not repeated', () => {
  const good = { token: 'a-good-token-of-length', role: 'viewer', who: 'ann' } as const
  const given: readonly unknown[] = [
    { ...good, token: 'sh0rt' },
    { ...good, token: 'with a space in between' },
    { ...good, token: '' },
    { ...good, who: ' ' },
    { ...good, who: 'a\nb' },
    // From plain JavaScript.
    ...[undefined, null, good.token, [good], { ...good, scopes: ['all'] }, { [good.token]: 'admin' }],
  ]
  for (const bad of given) {
    assert.throws(
      () => Reflect.apply(knownTokens, null, [[bad]]),
      (error: Error) =>
        Reflect.get(error, 'code') === 'ERR_OPTION_INVALID' &&
        !/sh0rt|with a space in|a-good-token/.test(error.message),
      JSON.stringify(bad),
    )
  }
  assert.throws(() => knownTokens([good, { ...good, who: 'bob' }]), /same token twice/)
})

test('without tokens a caller on this machine is an admin, and may say who it is', async (t) => {
  const { ask, send } = await stageOn(t, 'memory:')
  assert.deepEqual((await ask('showSession', {})).who, 'local')
  const named = await ask('showSession', { headers: { 'x-millrace-who': ' ann ' } })
  assert.deepEqual([named.who, named.role], ['ann', 'admin'])
  const long = await send('showSession', { headers: { 'x-millrace-who': 'a'.repeat(101) } })
  assert.deepEqual([long.status, long.body.code], [400, 'ERR_REQUEST_INVALID'])
})
