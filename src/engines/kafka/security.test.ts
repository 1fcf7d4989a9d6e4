import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isMillraceError, messageOf } from '../../errors.ts'
import { parseUrl } from './options.ts'

function securityOf(url: string) {
  return parseUrl(url).security
}

test('a URL asks for TLS by its scheme or a parameter', () => {
  assert.deepEqual(securityOf('kafka://a'), { tls: null, sasl: null })
  assert.deepEqual(securityOf('kafkas://a'), { tls: {}, sasl: null })
  assert.deepEqual(securityOf('kafka://a?tls=true&ca=/a.pem&cert=/c.pem&key=/k.pem&servername=b').tls, {
    ...{ ca: '/a.pem', cert: '/c.pem', key: '/k.pem', servername: 'b' },
  })
})

test('user and password come from the URL, decoded, or from a file or variable', () => {
  const { brokers, security } = parseUrl('kafkas://w%3A:p%40s%2Fs@a:1,b?sasl=scram-sha-512')
  assert.deepEqual(brokers, ['a:1', 'b:9092'])
  assert.deepEqual(security.sasl, { mechanism: 'scram-sha-512', username: 'w:', password: 'p@s/s' })
  const { sasl } = securityOf('kafkas://w@a?sasl=plain&passwordEnv=MILLRACE_NO_SUCH')
  assert.ok(sasl?.mechanism === 'plain' && typeof sasl.password === 'function')
  const { password } = sasl
  assert.throws(() => password(), /passwordEnv names 'MILLRACE_NO_SUCH', which is not set/)
  process.env.MILLRACE_NO_SUCH = 'now'
  assert.equal(password(), 'now')
  delete process.env.MILLRACE_NO_SUCH
})

test('OAUTHBEARER has a token and extensions', () => {
  const { sasl } = securityOf(
    'kafkas://a?sasl=oauthbearer&tokenFile=/t&extensions=logicalCluster:lkc-1,identityPoolId:p',
  )
  assert.ok(sasl?.mechanism === 'oauthbearer' && typeof sasl.token === 'function')
  assert.deepEqual(sasl.extensions, { logicalCluster: 'lkc-1', identityPoolId: 'p' })
})

test('whatever contradicts itself or would tell a secret is refused with what to write, and tells none', () => {
  const wrong: readonly (readonly [url: string, why: RegExp])[] = [
    ['kafka://u:geheim@a', /has a user and no sasl/],
    ['kafka://u:geheim@a?sasl=plain', /in clear text.*kafkas:, or tls=false/],
    ['kafka://a?sasl=oauthbearer&tokenEnv=T', /in clear text/],
    ['kafkas://a?tls=false', /kafkas:/],
    ['kafka://a?tls=yes', /neither true nor false/],
    ['kafka://a?ca=/x', /'ca' and no TLS/],
    ['kafkas://a?cert=/x', /needs both/],
    ['kafkas://a?keyPasswordEnv=X', /no key/],
    ['kafkas://a?ca=', /empty 'ca'/],
    ['kafkas://u:geheim@a?sasl=md5', /plain, scram-sha-256, scram-sha-512 or oauthbearer/],
    ['kafkas://a?sasl=plain', /names no user/],
    ['kafkas://u@a?sasl=plain', /has no password/],
    ['kafkas://u:geheim@a?sasl=plain&passwordEnv=X', /two passwords/],
    ['kafkas://u@a?sasl=plain&passwordEnv=X&passwordFile=/x', /give one/],
    ['kafkas://u:geheim@a?sasl=oauthbearer&tokenEnv=X', /the token says who it is/],
    ['kafkas://a?sasl=oauthbearer', /has no token/],
    ['kafkas://a?sasl=oauthbearer&tokenEnv=X&extensions=a', /logicalCluster:lkc-1/],
    ['kafkas://a?tokenEnv=X', /'tokenEnv' and no sasl/],
    ['kafkas://u:ge%zzheim@a?sasl=plain', /write % as %25/],
    // A password with characters that should have been written as %XX.
    ['kafkas://u:gehe/im@a', /no sasl/],
    ['kafkas://u:geh?e#im@a?nope=1', /unknown parameter/],
    ['kafkas://u:gehe@im@', /no URL of Kafka/],
  ]
  for (const [url, why] of wrong) {
    const thrown: unknown = (() => {
      try {
        return parseUrl(url)
      } catch (error) {
        return error
      }
    })()
    assert.ok(isMillraceError(thrown, 'ERR_ENGINE_URL'), url)
    assert.match(messageOf(thrown), why)
    assert.doesNotMatch(messageOf(thrown), /geheim|gehe|heim|zzh/, url)
  }
})
