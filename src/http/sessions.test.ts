import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TestClock } from '../testing/test-clock.ts'
import { type AdminToken, findToken, type KnownToken, knownTokens } from './auth.ts'
import { IDLE_MS_MAX, LOGIN_MS_MAX, Sessions } from './sessions.ts'

const ANN: AdminToken = { token: 'ann-token-0123456789', role: 'operator', who: 'ann' }
const BOB: AdminToken = { token: 'bob-token-0123456789', role: 'admin', who: 'bob' }
const HOUR_MS = 3_600_000

/** Another process, or the same one after a restart. */
function process(clock: TestClock, tokens: readonly AdminToken[] = [ANN, BOB]) {
  const known = knownTokens(tokens)
  const sessions = new Sessions(known, clock)
  const token = ({ token: text }: AdminToken): KnownToken => findToken(known, text) ?? assert.fail()
  const who = (value: string): string | null => sessions.find(value)?.caller.who ?? null
  return { sessions, token, who }
}

test('a login holds in every process with the same token, and ends where the token is gone or has another role', () => {
  const clock = new TestClock()
  const one = process(clock)
  const value = one.sessions.login(one.token(ANN))
  assert.ok(!value.includes(ANN.token) && !Buffer.from(value, 'base64url').includes(ANN.token))
  const { caller } = process(clock).sessions.find(value) ?? assert.fail()
  assert.deepEqual([caller.who, caller.role, caller.by, caller.untilMs], ['ann', 'operator', 'login', null])
  // Ann may have two tokens while one replaces the other.
  assert.equal(process(clock, [{ ...ANN, token: 'another-0123456789' }, ANN]).who(value), 'ann')
  for (const tokens of [[BOB], [{ ...ANN, token: 'another-0123456789' }], [{ ...ANN, role: 'viewer' } as const], []]) {
    assert.equal(process(clock, tokens).who(value), null, JSON.stringify(tokens))
  }
})

test('a value that was changed, or was never signed, is nothing', () => {
  const clock = new TestClock()
  const { sessions, token, who } = process(clock)
  const value = sessions.login(token(ANN))
  const [text = '', mark = ''] = value.split('.')
  const grant = JSON.parse(Buffer.from(text, 'base64url').toString())
  const coded = (changed: object) => Buffer.from(JSON.stringify({ ...grant, ...changed })).toString('base64url')
  const other = sessions.login(token(BOB)).split('.')[1] ?? ''
  for (const bad of [
    ...['', '.', text, `${text}.`, `.${mark}`, `${text}.${other}`, `${text}.${mark.slice(1)}`, 'x'.repeat(10_000)],
    ...[`${coded({ who: 'bob', role: 'admin' })}.${mark}`, `${coded({ untilMs: 9e15 })}.${mark}`, `bnVsbA.${mark}`],
    ...[`${coded({ extra: 1 })}.${mark}`, `${coded({ role: 'owner' })}.${mark}`],
  ]) {
    assert.equal(who(bad), null, bad.slice(0, 100))
    assert.equal(sessions.follow(bad), null)
    sessions.end(bad)
  }
  assert.equal(who(value), 'ann')
})

test('a login ends when it is not used, and goes on while it is, for a month at most', async () => {
  const clock = new TestClock()
  const { sessions, token, who } = process(clock)
  let value = sessions.login(token(ANN))
  const unused = value
  assert.equal(sessions.find(value)?.renewed, null, 'not with every request')
  await clock.advance(IDLE_MS_MAX)
  assert.equal(who(unused), null)

  value = sessions.login(token(ANN))
  const sinceMs = clock.nowMs()
  for (;;) {
    await clock.advance(6 * HOUR_MS)
    const found = sessions.find(value)
    if (found === null) break
    value = found.renewed ?? value
    assert.ok(clock.nowMs() - sinceMs <= LOGIN_MS_MAX)
  }
  assert.equal(clock.nowMs() - sinceMs, LOGIN_MS_MAX)
})

test('who logs out is out, also with the value that was renewed meanwhile', async () => {
  const clock = new TestClock()
  const { sessions, token, who } = process(clock)
  const [value, other] = [sessions.login(token(ANN)), sessions.login(token(ANN))]
  await clock.advance(2 * HOUR_MS)
  const renewed = sessions.find(value)?.renewed ?? assert.fail()
  sessions.end(value)
  assert.deepEqual([who(value), who(renewed), who(other)], [null, null, 'ann'])
  await clock.advance(IDLE_MS_MAX)
  // What is forgotten now has expired.
  sessions.end(sessions.login(token(BOB)))
  assert.deepEqual([who(value), who(renewed)], [null, null])
})

test('a link lets its holders look until its time, ends with its token, and is not renewed', async () => {
  const clock = new TestClock()
  const { sessions, token, who } = process(clock)
  const untilMs = clock.nowMs() + 24 * HOUR_MS
  const link = sessions.link(token(BOB), untilMs)
  const [value, other] = [sessions.follow(link) ?? assert.fail(), sessions.follow(link) ?? assert.fail()]
  await clock.advance(23 * HOUR_MS)
  const { caller, renewed } = sessions.find(value) ?? assert.fail()
  assert.deepEqual([caller.who, caller.role, caller.by, caller.untilMs], ['link of bob', 'viewer', 'link', untilMs])
  assert.equal(renewed, null)
  assert.equal(process(clock, [ANN]).sessions.follow(link), null)
  sessions.end(value)
  assert.deepEqual([who(value), who(other)], [null, 'link of bob'], 'one holder logs out')
  assert.equal(sessions.follow(sessions.login(token(BOB))), null, 'a login is no link')
  await clock.advance(HOUR_MS)
  assert.deepEqual([who(other), sessions.follow(link)], [null, null])
})
