/** Brokers that ask for the login again and again (`connections.max.reauth.ms`). */
import assert from 'node:assert/strict'
import { createSign, generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, type TestContext, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { openKafka } from '../../src/engines/kafka/index.ts'
import { messageOf } from '../../src/errors.ts'
import { defineJob, open } from '../../src/index.ts'
import { freshName } from '../servers/kafka.ts'
import { type SecureKafka, secureUrl, startSecureKafka } from '../servers/kafka-secure.ts'
import { eventually, startHolder } from './kafka-fixtures.ts'

/** A login lasts so long, and is renewed at four fifths of it. */
const LOGIN_MS = 4_000
const TIMING = '&partitions=3&session=30000&heartbeat=200'

const folder = mkdtempSync(join(tmpdir(), 'millrace-tokens-'))
const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
const strangerKey = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey
let kafka: SecureKafka

before(async () => {
  const jwks = join(folder, 'jwks.json')
  const key = { ...publicKey.export({ format: 'jwk' }), kid: 'tests', use: 'sig', alg: 'RS256' }
  writeFileSync(jwks, JSON.stringify({ keys: [key] }))
  const url = pathToFileURL(jwks).href
  const oauth = 'org.apache.kafka.common.security.oauthbearer'
  const listener = 'listener.name.secure.oauthbearer'
  kafka = await startSecureKafka(
    {
      'connections.max.reauth.ms': String(LOGIN_MS),
      [`${listener}.sasl.server.callback.handler.class`]: `${oauth}.OAuthBearerValidatorCallbackHandler`,
      // Named for all listeners: with its name before them, 4.1 passes these over and takes tokens of any signature.
      'sasl.oauthbearer.jwt.validator.class': `${oauth}.BrokerJwtValidator`,
      [`${listener}.sasl.jaas.config`]: `${oauth}.OAuthBearerLoginModule required;`,
      'sasl.oauthbearer.jwks.endpoint.url': url,
      'sasl.oauthbearer.expected.audience': 'kafka',
      'sasl.oauthbearer.expected.issuer': 'tests',
      'sasl.oauthbearer.clock.skew.seconds': '0',
    },
    [`-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls=${url}`],
  )
})
after(async () => {
  await kafka.end()
  rmSync(folder, { recursive: true, force: true })
})

/** A token of RS256, as servers of OAuth issue them. */
function signed(given: { seconds: number; key?: typeof privateKey; aud?: string }): string {
  const { seconds, key = privateKey, aud = 'kafka' } = given
  const now = Math.floor(Date.now() / 1_000)
  const claims = { sub: 'worker', iss: 'tests', aud, iat: now - 60, exp: now + seconds }
  const body = [{ alg: 'RS256', kid: 'tests', typ: 'JWT' }, claims]
    .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
    .join('.')
  return `${body}.${createSign('RSA-SHA256').update(body).sign(key).toString('base64url')}`
}

/** Enqueues and works while logins end several times: each job runs once. */
async function worksOn(t: TestContext, target: Parameters<typeof open>[0]): Promise<void> {
  const mill = await open(target)
  t.after(() => mill.close())
  const ran = new Map<unknown, number>()
  const errors: string[] = []
  // On a machine that stands still for a second the broker is quicker, and closes the connection.
  const isLate = (text: string): boolean => text.includes('closed the connection')
  mill.events.on('worker.error', ({ error }) => void (isLate(messageOf(error)) || errors.push(messageOf(error))))
  const job = defineJob({
    type: freshName('case'),
    run: async ({ payload }) => void ran.set(payload, (ran.get(payload) ?? 0) + 1),
  })
  await mill.work([job], { concurrency: 10 })
  let written = 0
  const untilMs = performance.now() + LOGIN_MS * 2.5
  while (performance.now() < untilMs) {
    const five = Array.from({ length: 5 }, (_, index) => written + index)
    await Promise.all([mill.counts(), ...five.map((n) => mill.enqueue(job, n))])
    written += five.length
  }
  await eventually(() => ran.size === written, 'every job')
  assert.deepEqual([[...ran.values()].filter((times) => times > 1), errors], [[], []])
}

describe('with logins that end, workers go on', () => {
  for (const mechanism of ['scram-sha-512', 'plain'])
    test(mechanism, (t) =>
      worksOn(t, `${secureUrl(kafka).replace('scram-sha-512', mechanism)}&group=${freshName('group')}${TIMING}`),
    )

  test('oauthbearer, with signed tokens that expire and are fetched anew', async (t) => {
    let fetched = 0
    const token = async (): Promise<string> => {
      fetched += 1
      return signed({ seconds: 6 })
    }
    const url = `kafkas://${kafka.secure}?ca=${kafka.certificates.ca}&group=${freshName('group')}${TIMING}`
    const engine = await openKafka(url, { sasl: { mechanism: 'oauthbearer', token } })
    await worksOn(t, engine)
    // Six connections, each with more than one login.
    assert.ok(fetched >= 12, `fetched ${fetched} tokens`)
  })
})

test('a token that is expired, for others or signed by a stranger is refused with a sentence', async () => {
  const tokens = [{ seconds: -60 }, { seconds: 60, aud: 'others' }, { seconds: 60, key: strangerKey }].map(signed)
  for (const text of tokens) {
    const opened = openKafka(`kafkas://${kafka.secure}?ca=${kafka.certificates.ca}`, {
      sasl: { mechanism: 'oauthbearer', token: text },
    })
    await assert.rejects(opened, { code: 'ERR_STORAGE_OPEN', message: /refused the token.*expired.*audience/ })
  }
})

test('a process whose broker went away ends when it has closed, and does not wait to log in again', async (t) => {
  const broker = await startSecureKafka({ 'connections.max.reauth.ms': '600000' })
  t.after(() => broker.end())
  const holder = startHolder(`${secureUrl(broker)}&group=${freshName('group')}&timeout=1000`, freshName('case'))
  t.after(() => holder.end())
  await holder.heard('ready')
  await broker.kill()
  holder.tell('leave')
  await holder.heard('left')
  const exit = once(holder.process, 'exit')
  holder.process.stdin?.end()
  assert.deepEqual(await Promise.race([exit, new Promise((resolve) => setTimeout(resolve, 30_000, 'still there'))]), [
    0,
    null,
  ])
})
