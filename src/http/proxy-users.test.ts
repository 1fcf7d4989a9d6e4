/** The names of people who come through an authenticating proxy. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ORIGIN, stageOn } from '../../test/fixtures/admin.ts'
import { open } from '../client/mill.ts'
import { createAdmin } from './admin.ts'

const OTTO = { token: 'otto-token-0123456789', role: 'operator', who: 'otto' } as const
const bearer = { authorization: `Bearer ${OTTO.token}` }
const NAMED = { 'x-forwarded-user': 'ann@example.com' }
const TRUSTED = { trustUserHeader: 'X-Forwarded-User' } as const

test('the audit has the user that a trusted proxy names, and the role of the token', async (t) => {
  const { ask } = await stageOn(t, 'memory:', { tokens: [OTTO], ...TRUSTED })
  await ask('pauseQueue', { params: { type: 'bill' }, headers: { ...bearer, ...NAMED } })
  await ask('resumeQueue', { params: { type: 'bill' }, headers: bearer })
  const { items } = await ask('listAudit', { headers: bearer })
  assert.deepEqual(
    items.map(({ who }) => who),
    ['otto', 'ann@example.com'],
  )
  const { who, role } = await ask('showSession', { headers: { ...bearer, ...NAMED } })
  assert.deepEqual([who, role], ['ann@example.com', 'operator'])
})

test('a login keeps its role, and has the name of the request', async (t) => {
  const { raw, ask } = await stageOn(t, 'memory:', { tokens: [OTTO], ...TRUSTED })
  const headers = { 'content-type': 'application/json', origin: ORIGIN, ...NAMED }
  const body = JSON.stringify({ token: OTTO.token })
  const response = await raw('/api/v1/login', { method: 'POST', headers, body })
  const cookie = response.headers.getSetCookie()[0]?.split(';')[0] ?? assert.fail()
  await ask('pauseQueue', { params: { type: 'bill' }, body: {}, headers: { ...headers, cookie } })
  const { items } = await ask('listAudit', { headers: { cookie } })
  assert.deepEqual(
    [items[0]?.who, (await ask('showSession', { headers: { cookie } })).who],
    [NAMED['x-forwarded-user'], 'otto'],
  )
})

test('a name alone lets nobody in', async (t) => {
  const { send } = await stageOn(t, 'memory:', { tokens: [OTTO], ...TRUSTED })
  for (const headers of [NAMED, { ...NAMED, authorization: 'Bearer wrong' }, { 'x-forwarded-user': 'otto' }]) {
    assert.equal((await send('showSession', { headers })).status, 401)
  }
})

test('without the setting the header is ignored', async (t) => {
  const { ask } = await stageOn(t, 'memory:', { tokens: [OTTO] })
  const local = await stageOn(t, 'memory:')
  assert.equal((await ask('showSession', { headers: { ...bearer, ...NAMED } })).who, 'otto')
  assert.equal((await local.ask('showSession', { headers: NAMED })).who, 'local')
})

test('without tokens it names callers on this machine, and lets in nobody else', async (t) => {
  let peer = '127.0.0.1'
  const { ask, send } = await stageOn(t, 'memory:', { ...TRUSTED, peer: () => peer })
  const headers = { ...NAMED, 'x-millrace-who': 'mallory' }
  assert.equal((await ask('showSession', { headers })).who, 'ann@example.com')
  assert.equal((await ask('showSession', {})).who, 'local')
  assert.equal((await send('showSession', { headers: { ...NAMED, 'x-forwarded-for': '10.0.0.7' } })).status, 403)
  peer = '10.0.0.7'
  assert.equal((await send('showSession', { headers })).status, 403)
})

test('a name is bounded, has no control characters, and may be UTF-8', async (t) => {
  const { ask, send } = await stageOn(t, 'memory:', { tokens: [OTTO], ...TRUSTED })
  const named = (name: string) => ({ headers: { ...bearer, 'x-forwarded-user': name } })
  const asBytes = (name: string) => Buffer.from(name).toString('latin1')
  for (const name of ['a\tb', 'a\u007fb', 'a'.repeat(101), asBytes('a\u0085b')]) {
    const { status, body } = await send('showSession', named(name))
    assert.deepEqual([status, body.code], [400, 'ERR_REQUEST_INVALID'], JSON.stringify(name))
  }
  for (const [given, who] of [
    ['', 'otto'],
    ['  ', 'otto'],
    [' ann ', 'ann'],
    ['cn=ann,ou=x', 'cn=ann,ou=x'],
    [asBytes('Änne Łuk'), 'Änne Łuk'],
    ['J\u00f6rg', 'J\u00f6rg'],
  ] as const) {
    assert.equal((await ask('showSession', named(given))).who, who)
  }
})

test('the setting is the name of a header', async (t) => {
  const mill = await open('memory:')
  t.after(() => mill.close())
  for (const name of ['', 'x user', 'x:user', 'x\nuser', null, 7]) {
    const options = Object({ page: null, trustUserHeader: name })
    assert.throws(() => createAdmin(mill, options), { code: 'ERR_OPTION_INVALID', message: /trustUserHeader/ })
  }
})
