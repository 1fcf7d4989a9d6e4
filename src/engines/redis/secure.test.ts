import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, type TestContext, test } from 'node:test'
import { createServer } from 'node:tls'
import { inspect } from 'node:util'
import type { Certificates } from '../../../test/servers/certificates.ts'
import { withRedis } from '../../../test/servers/redis.ts'
import { type SecureRedis, startSecureRedis } from '../../../test/servers/redis-secure.ts'
import { isMillraceError } from '../../errors.ts'
import { defineJob, type Mill, open } from '../../index.ts'

const folder = mkdtempSync(join(tmpdir(), 'millrace-redis-secrets-'))
let server: SecureRedis
let certificates: Certificates
let address = ''

before(async () => {
  server = await startSecureRedis()
  certificates = server.certificates
  address = server.secure
})
after(async () => {
  await server.end()
  rmSync(folder, { recursive: true, force: true })
})

function allow(user: string, ...rules: readonly string[]): Promise<unknown> {
  return withRedis(server.url, (redis) => redis.call('ACL', 'SETUSER', user, 'reset', 'on', '>s3cret', ...rules))
}

async function runsOne(t: TestContext, target: string): Promise<void> {
  const mill = await open(target)
  t.after(() => mill.close())
  const job = defineJob({ type: 'over-the-wire', run: async () => 'done' })
  await mill.work([job])
  const { id } = await mill.enqueue(job, { n: 1 })
  assert.equal(await mill.result(id, { timeout: '30s' }), 'done')
}

/** One that speaks TLS 1.0 and nothing newer. */
async function agedServer(t: TestContext): Promise<number> {
  const [cert, key] = [readFileSync(certificates.server.cert), readFileSync(certificates.server.key)]
  const versions = { minVersion: 'TLSv1', maxVersion: 'TLSv1', ciphers: 'DEFAULT@SECLEVEL=0' } as const
  const aged = createServer({ cert, key, ...versions }).listen(0, '127.0.0.1')
  t.after(() => aged.close())
  await once(aged, 'listening')
  const found = aged.address()
  return typeof found === 'object' && found !== null ? found.port : 0
}

describe('Redis over TLS with an ACL user', { timeout: 120_000 }, () => {
  test('a job is enqueued, run and its leases renewed by the thread, which has the URL too', (t) =>
    runsOne(t, `rediss://worker:s3cret@${address}?ca=${certificates.ca}`))

  test('with a client certificate, and the password from a file', async (t) => {
    const { client, ca } = certificates
    await withRedis(server.url, (redis) => redis.config('SET', 'tls-auth-clients', 'yes'))
    t.after(() => withRedis(server.url, (redis) => redis.config('SET', 'tls-auth-clients', 'optional')))
    const path = join(folder, 'password')
    writeFileSync(path, 's3cret\n')
    await runsOne(t, `rediss://worker@${address}?ca=${ca}&cert=${client.cert}&key=${client.key}&passwordFile=${path}`)
  })

  test('what is not trusted or may not log in says what to do, and no secret', async (t) => {
    const { ca, strangerCa } = certificates
    await allow('guest', '+ping', '+info', '+client')
    const expired = await startSecureRedis('expired')
    t.after(() => expired.end())
    const wrong: readonly (readonly [url: string, why: RegExp])[] = [
      [`rediss://worker:s3cret@${address}`, /not trusted here.*ca=/],
      [`rediss://worker:s3cret@${address}?ca=${strangerCa}`, /not trusted here/],
      [`rediss://worker:s3cret@${address}?ca=${ca}&servername=elsewhere`, /is for another name/],
      [`rediss://worker:wr0ng-s3cret@${address}?ca=${ca}`, /user or password is wrong/],
      [`rediss://guest:s3cret@${address}?ca=${ca}`, /lacks the permission for 'evalsha'.*ACL SETUSER/],
      [expired.engineUrl, /certificate of the server has expired/],
      [`rediss://127.0.0.1:${server.port}?ca=${ca}&timeout=1000`, /whether it is redis: or rediss:/],
      [
        `rediss://127.0.0.1:${await agedServer(t)}?ca=${ca}`,
        /^Redis: connecting: ERR_SSL_\w+; TLS failed; .* which versions/,
      ],
      [`redis://worker:s3cret@${address}`, /whether it is redis: or rediss:/],
      [`rediss://${address}?ca=${folder}/none.pem`, /ca names a file that cannot be read/],
      [`rediss://worker@${address}?ca=${ca}&passwordEnv=MILLRACE_NO_SUCH`, /which is not set/],
    ]
    for (const [url, why] of wrong) {
      const error = await open(url).then(
        () => null,
        (thrown: unknown) => thrown,
      )
      assert.ok(isMillraceError(error, 'ERR_STORAGE_OPEN'), String(error))
      assert.match(error.message, why)
      assert.doesNotMatch(inspect(error, { depth: 10 }), /s3cret/)
    }
  })
})

test('a command that a script may not run is named', async (t) => {
  await allow('some', '~bull:*', '&bull:*', '+@all', '-@admin', '-@dangerous', '+info', '-zadd')
  const mill = await open(`rediss://some:s3cret@${address}?ca=${certificates.ca}`)
  t.after(() => mill.close())
  const enqueued = mill.enqueue(defineJob({ type: 'denied' }), { n: 1 }, { delay: '1h' })
  await assert.rejects(enqueued, { code: 'ERR_STORAGE_OPEN', message: /lacks the permission for 'zadd'; grant it/ })
})

test('the doctor says which rights are missing that a worker goes without', async (t) => {
  const [keys, ...rest] = ['~bull:*', '+@all', '-@admin', '-@dangerous', '+info']
  await allow('deaf', keys ?? '', 'resetchannels', ...rest, '-@blocking')
  await allow('whole', keys ?? '', '&bull:*', ...rest)
  const seen = new Map<string, readonly (readonly [string, string])[]>()
  for (const user of ['deaf', 'whole']) {
    const mill = await open(`rediss://${user}:s3cret@${address}?ca=${certificates.ca}`)
    t.after(() => mill.close())
    const findings = (await mill.engine.diagnose?.())?.filter(({ subject }) => subject === 'rights') ?? []
    seen.set(
      user,
      findings.map(({ severity, detail }) => [severity, detail]),
    )
  }
  assert.deepEqual(seen.get('whole'), [])
  const [wait, cancel] = seen.get('deaf') ?? []
  assert.equal(wait?.[0], 'warning')
  assert.match(wait?.[1] ?? '', /not woken.*'bzpopmin'/)
  assert.match(cancel?.[1] ?? '', /cancelled.*channel/)
})

/** A call that was on its way when the connection broke is rejected; the next one waits for a connection. */
async function answers(mill: Mill): Promise<void> {
  await mill.engine.ping().catch(() => mill.engine.ping())
}

test('a password that changes is taken from its file at the next connection', async (t) => {
  const path = join(folder, 'rotating')
  writeFileSync(path, 's3cret\n')
  await allow('rotating', '~bull:*', '&bull:*', '+@all', '-@admin', '-@dangerous', '+info')
  const mill = await open(`rediss://rotating@${address}?ca=${certificates.ca}&passwordFile=${path}`)
  t.after(() => mill.close())
  writeFileSync(path, 'changed')
  await withRedis(server.url, async (redis) => {
    await redis.call('ACL', 'SETUSER', 'rotating', 'resetpass', '>changed')
    await redis.call('CLIENT', 'KILL', 'USER', 'rotating')
  })
  await answers(mill)
  // A file that is missing for a moment leaves the last password in use, and a warning says so.
  const warned = once(process, 'warning')
  rmSync(path)
  await withRedis(server.url, (redis) => redis.call('CLIENT', 'KILL', 'USER', 'rotating'))
  await answers(mill)
  const [warning] = await warned
  assert.equal(warning.code, 'MILLRACE_SECRET_NOT_READ')
  assert.match(warning.message, /passwordFile names a file that cannot be read/)
  assert.doesNotMatch(warning.message, /changed|s3cret/)
})
