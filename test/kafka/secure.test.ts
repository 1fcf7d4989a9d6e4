import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { inspect } from 'node:util'
import { openDesk } from '../../src/desk/desk.ts'
import { openKafka } from '../../src/engines/kafka/index.ts'
import { isMillraceError } from '../../src/errors.ts'
import { defineJob, open } from '../../src/index.ts'
import { freshName } from '../servers/kafka.ts'
import { NOBODY, type SecureKafka, secureUrl, setPassword, startSecureKafka, WORKER } from '../servers/kafka-secure.ts'
import { withAdmin } from '../servers/kafka-topics.ts'
import { eventually } from './kafka-fixtures.ts'

let kafka: SecureKafka
const folder = mkdtempSync(join(tmpdir(), 'millrace-secure-'))

before(async () => {
  kafka = await startSecureKafka()
})
after(async () => {
  await kafka.end()
  rmSync(folder, { recursive: true, force: true })
})

/** Enqueues, works, dies once, lists and replays: every client of the engine is used. */
async function roundTrip(url: string): Promise<void> {
  const mill = await open(`${url}&group=${freshName('group')}&partitions=1&session=60000`)
  try {
    const type = freshName('case')
    let runs = 0
    const job = defineJob({
      type,
      attempts: 1,
      run: async () => {
        runs += 1
        if (runs === 1) throw new Error('once')
      },
    })
    await mill.work([job])
    await mill.enqueue(job, { n: 1 })
    await eventually(async () => (await mill.engine.counts())[type]?.dead === 1, 'a dead letter')
    const outcome = await openDesk(mill).replayAll({ type }, { who: 'ann', reason: 'again' })
    assert.equal(outcome.done, 1)
    await eventually(() => runs >= 2, 'the second run')
  } finally {
    await mill.close()
  }
}

function token(seconds: number): string {
  const now = Math.floor(Date.now() / 1_000)
  const claims = { sub: 'worker', iat: now - 600, exp: now + seconds }
  const parts = [{ alg: 'none' }, claims].map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
  return `${parts.join('.')}.`
}

function file(name: string, text: string): string {
  writeFileSync(join(folder, name), text)
  return join(folder, name)
}

async function refusal(url: string): Promise<unknown> {
  const mill = await open(url).catch((error: unknown) => error)
  assert.ok(isMillraceError(mill), `${String(mill)} should be an error of ours`)
  assert.doesNotMatch(
    inspect(mill, { depth: Number.POSITIVE_INFINITY }),
    /secret/,
    'no secret in the error or its causes',
  )
  return mill
}

const scram = (): string => secureUrl(kafka)
const withLogin = (login: string): string => scram().replace(/\/\/.*@/, `//${login}@`)

describe('over TLS and SASL, with ACLs', () => {
  test('SCRAM-SHA-512 with a password of the URL', () => roundTrip(scram()))
  test('SCRAM-SHA-256 with a password from a file', () =>
    roundTrip(`${withLogin('worker').replace('512', '256')}&passwordFile=${file('password', `${WORKER.password}\n`)}`))
  test('PLAIN', () => roundTrip(scram().replace('scram-sha-512', 'plain')))
  test('OAUTHBEARER with a token from a file', () =>
    roundTrip(
      `kafkas://${kafka.secure}?sasl=oauthbearer&tokenFile=${file('token', token(3_600))}&ca=${kafka.certificates.ca}`,
    ))
  test('a client certificate', () => {
    const { ca, client } = kafka.certificates
    return roundTrip(`kafkas://${kafka.mutual}?cert=${client.cert}&key=${client.key}&ca=${ca}`)
  })
})

test('what cannot log in or does not trust says why and what to do', async () => {
  const { ca, strangerCa, stranger } = kafka.certificates
  const cases: readonly (readonly [url: string, why: RegExp])[] = [
    [withLogin('worker:x-secret'), /refused the login; check user and password/],
    [withLogin('worker:x-secret').replace('scram-sha-512', 'plain'), /refused the login/],
    [
      `kafkas://${kafka.secure}?sasl=oauthbearer&tokenFile=${file('old', token(-60))}&ca=${ca}`,
      /refused the token.*expired/,
    ],
    [`kafkas://${kafka.expired}?ca=${ca}`, /the certificate of the server has expired; renew it/],
    [scram().replace(/&ca=.*/, ''), /not trusted here; give the authority's certificate: ca=/],
    [scram().replace(/&ca=.*/, `&ca=${strangerCa}`), /not trusted here/],
    [`${scram()}&servername=elsewhere`, /is for another name/],
    [`kafkas://${kafka.mutual}?ca=${ca}`, /a client certificate that it trusts/],
    [`kafkas://${kafka.mutual}?ca=${ca}&cert=${stranger.cert}&key=${stranger.key}`, /that it trusts/],
    [
      `kafkas://${kafka.mutual}?ca=${ca}&cert=${stranger.cert}&key=${kafka.certificates.client.key}`,
      /fits its certificate/,
    ],
    [`kafkas://${kafka.secure}?ca=${folder}/none.pem`, /ca names a file that cannot be read/],
    [`kafka://${kafka.secure}`, /wants TLS on this port; write kafkas:/],
    [`kafkas://${kafka.address}?ca=${ca}`, /does no TLS on this port/],
    [`kafka://worker:x-secret@${kafka.address}?sasl=scram-sha-256`, /takes no SASL/],
    [`kafka://${kafka.clear}`, /wants TLS, SASL or a client certificate/],
  ]
  await Promise.all(
    cases.map(async ([url, why]) => {
      const error = await refusal(url)
      assert.ok(isMillraceError(error, 'ERR_STORAGE_OPEN'))
      assert.match(error.message, why)
    }),
  )
})

test('a function that fetches tokens is asked for every connection, and what contradicts the URL is refused', async () => {
  const { ca } = kafka.certificates
  let asked = 0
  const sasl = {
    mechanism: 'oauthbearer',
    token: async () => {
      asked += 1
      return token(3_600)
    },
  } as const
  const mill = await open(await openKafka(`kafkas://${kafka.secure}?ca=${ca}&group=group-1&partitions=1`, { sasl }))
  await mill.enqueue(defineJob({ type: freshName('case') }), {})
  await mill.close()
  // The admin and the producer each have a connection.
  assert.ok(asked >= 2, `asked ${asked} times`)
  await assert.rejects(openKafka(scram(), { sasl }), { code: 'ERR_OPTION_INVALID', message: /give one/ })
  await assert.rejects(openKafka(`kafka://${kafka.clear}`, { sasl }), { message: /clear text/ })
})

test('a right that is missing is named, with the topic or group, and nothing is written', async () => {
  const type = freshName('case')
  const nobody = await open(`${withLogin(`${NOBODY.user}:${NOBODY.password}`)}&group=group-1`)
  const topic = new RegExp(`lacks a right on the topic.*${type}`)
  await assert.rejects(nobody.enqueue(defineJob({ type }), {}), { code: 'ERR_STORAGE_READONLY', message: topic })
  await nobody.close()
  const elsewhere = await open(`${scram()}&group=elsewhere&partitions=1`)
  const working = elsewhere.work([defineJob({ type, run: async () => {} })])
  await assert.rejects(working, { code: 'ERR_STORAGE_READONLY', message: /Read on the group/ })
  await elsewhere.close()
  const topics = await withAdmin(kafka, (admin) => admin.listTopics())
  assert.ok(!topics.includes(`${type}.dlq`))
})

test('the doctor of a user with the rights of a worker says what it cannot see, and looks at the rest', async () => {
  const mill = await open(`${scram()}&group=${freshName('group')}&drain=1000`)
  const findings = (await mill.engine.diagnose?.({ handlerMs: 60_000 })) ?? []
  await mill.close()
  assert.deepEqual(
    findings.filter(({ severity }) => severity === 'error'),
    [],
  )
  const unseen = findings.filter(({ detail }) => /lacks a right on the cluster.*DescribeConfigs/.test(detail))
  assert.deepEqual(
    unseen.map(({ severity }) => severity),
    ['warning'],
  )
  assert.ok(
    findings.some(({ subject, severity }) => subject === 'handlers' && severity === 'warning'),
    JSON.stringify(findings),
  )
})

test('a password that changes is taken from its file at the next connection', async () => {
  const login = { user: 'rotating', password: 'first-secret' }
  await withAdmin(kafka, (admin) => setPassword(admin, login))
  const path = file('rotating', login.password)
  const mill = await open(`${withLogin('rotating')}&passwordFile=${path}&group=group-1`)
  await withAdmin(kafka, (admin) => setPassword(admin, { ...login, password: 'second-secret' }))
  file('rotating', 'second-secret')
  await mill.engine.ping()
  // The producer connects only now.
  await assert.rejects(mill.enqueue(defineJob({ type: freshName('case') }), {}), { code: 'ERR_STORAGE_READONLY' })
  await mill.close()
})
