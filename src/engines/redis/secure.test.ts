import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, type TestContext, test } from 'node:test'
import { inspect } from 'node:util'
import { Redis } from 'ioredis'
import { findProgram } from '../../../test/servers/apt.ts'
import { type Certificates, makeCertificates } from '../../../test/servers/certificates.ts'
import { freePort } from '../../../test/servers/free-port.ts'
import { type OwnRedis, startRedis, withRedis } from '../../../test/servers/redis.ts'
import { isMillraceError } from '../../errors.ts'
import { defineJob, open } from '../../index.ts'

const folder = mkdtempSync(join(tmpdir(), 'millrace-redis-tls-'))
let server: OwnRedis
let certificates: Certificates
let address = ''

before(async () => {
  certificates = makeCertificates(folder)
  const port = await freePort()
  address = `127.0.0.1:${port}`
  const { server: own, ca } = certificates
  server = await startRedis({
    settings: {
      'tls-port': String(port),
      'tls-cert-file': own.cert,
      'tls-key-file': own.key,
      'tls-ca-cert-file': ca,
      'tls-auth-clients': 'optional',
    },
  })
  // As docs/operating-redis.md has it.
  const rights = ['on', '>s3cret', '~bull:*', '&bull:*', '+@all', '-@admin', '-@dangerous', '+info']
  await withRedis(server.url, (redis) => redis.call('ACL', 'SETUSER', 'worker', ...rights))
  await withRedis(server.url, (redis) =>
    redis.call('ACL', 'SETUSER', 'guest', 'on', '>s3cret', '+ping', '+info', '+client'),
  )
})
after(async () => {
  await server.end()
  rmSync(folder, { recursive: true, force: true })
})

async function runsOne(t: TestContext, target: Parameters<typeof open>[0]): Promise<void> {
  const mill = await open(target)
  t.after(() => mill.close())
  const job = defineJob({ type: 'over-the-wire', run: async () => 'done' })
  await mill.work([job])
  const { id } = await mill.enqueue(job, { n: 1 })
  assert.equal(await mill.result(id, { timeout: '30s' }), 'done')
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

  test('what is not trusted or may not log in says what to do, and no secret', async () => {
    const { ca, strangerCa } = certificates
    const wrong: readonly (readonly [url: string, why: RegExp])[] = [
      [`rediss://worker:s3cret@${address}`, /not trusted here.*ca=/],
      [`rediss://worker:s3cret@${address}?ca=${strangerCa}`, /not trusted here/],
      [`rediss://worker:s3cret@${address}?ca=${ca}&servername=elsewhere`, /is for another name/],
      [`rediss://worker:wr0ng-s3cret@${address}?ca=${ca}`, /user or password is wrong/],
      [`rediss://guest:s3cret@${address}?ca=${ca}`, /lacks a permission.*ACL SETUSER/],
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

test('a Sentinel is refused by its address, and an ioredis client that asks it is taken', async (t) => {
  const program = findProgram('redis-server', 'redis-server') ?? ''
  const port = await freePort()
  const file = join(folder, 'sentinel.conf')
  writeFileSync(file, `port ${port}\nbind 127.0.0.1\nsentinel monitor jobs 127.0.0.1 ${server.port} 1\n`)
  const sentinel = spawn(program, [file, '--sentinel'], { stdio: ['ignore', 'pipe', 'ignore'], cwd: folder })
  t.after(async () => {
    sentinel.kill()
    await once(sentinel, 'exit')
  })
  for await (const chunk of sentinel.stdout) if (String(chunk).includes('monitor master')) break
  const refused = { code: 'ERR_STORAGE_OPEN', message: /this is a Sentinel.*'sentinels'/ }
  await assert.rejects(open(`redis://127.0.0.1:${port}`), refused)
  const client = new Redis({ sentinels: [{ host: '127.0.0.1', port }], name: 'jobs', lazyConnect: true })
  t.after(() => client.disconnect())
  await runsOne(t, client)
})
