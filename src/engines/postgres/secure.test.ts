import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { inspect } from 'node:util'
import type { Certificates } from '../../../test/servers/certificates.ts'
import { query, schemaUrl, startPostgres } from '../../../test/servers/postgres.ts'
import { type SecurePostgres, startSecurePostgres } from '../../../test/servers/postgres-secure.ts'
import { applyMigrations } from '../../engine/open.ts'
import { isMillraceError } from '../../errors.ts'
import { defineJob, open } from '../../index.ts'
import { systemClock } from '../../time/clock.ts'

let server: SecurePostgres
let certificates: Certificates

before(async () => {
  server = await startSecurePostgres()
  certificates = server.certificates
})
after(() => server.stop())

/** With these parameters, as this role. */
function urlOf(login: string, parameters: string): string {
  const { url } = schemaUrl({ ...server, engineUrl: server.url })
  return `${url.replace('//postgres@', `//${login}@`)}&${parameters}`
}

async function runsOne(url: string): Promise<void> {
  await applyMigrations(url, { clock: systemClock, migrate: true })
  const mill = await open(url)
  try {
    const job = defineJob({ type: 'over-the-wire', run: async () => 'done' })
    await mill.work([job])
    const { id } = await mill.enqueue(job, { n: 1 })
    assert.equal(await mill.result(id, { timeout: '30s' }), 'done')
    const seen = await query<{ ssl: boolean }>(
      server.url,
      `select ssl from pg_stat_ssl join pg_stat_activity using (pid) where application_name = 'millrace'`,
    )
    assert.ok(seen.length > 0 && seen.every(({ ssl }) => ssl), 'every connection is over TLS, that of the thread too')
  } finally {
    await mill.close()
  }
}

test('with a verified certificate, and a login that is bound to it', () =>
  runsOne(urlOf('guarded:s3cret', `sslmode=verify-full&sslrootcert=${certificates.ca}&channel_binding=require`)))

test('with a client certificate', () => {
  const { ca, client } = certificates
  return runsOne(urlOf('worker', `sslmode=verify-full&sslrootcert=${ca}&sslcert=${client.cert}&sslkey=${client.key}`))
})

test('what is not trusted or not bound is refused with what to do, and tells no secret', async (t) => {
  const { ca, strangerCa, stranger } = certificates
  const expired = await startSecurePostgres('expired')
  t.after(() => expired.stop())
  const plain = await startPostgres()
  t.after(() => plain.stop())
  const wrong: readonly (readonly [url: string, why: RegExp])[] = [
    [expired.engineUrl, /the certificate of the server has expired; renew it/],
    [`${plain.url}?sslmode=verify-full&sslrootcert=${ca}`, /the server does no TLS; set ssl=on/],
    [
      // Leads to the same server under an address that is not in its certificate.
      urlOf('guarded:s3cret', `sslmode=verify-full&sslrootcert=${ca}`).replace('127.0.0.1', '0.0.0.0'),
      /is for another name/,
    ],
    ...['prefer', 'require', 'verify-ca'].map(
      (mode) => [urlOf('guarded:s3cret', `sslmode=${mode}&sslrootcert=${strangerCa}`), /not trusted here/] as const,
    ),
    [urlOf('guarded:s3cret', 'sslmode=verify-full'), /not trusted here.*sslrootcert=/],
    [urlOf('guarded:s3cret', `sslmode=verify-full&sslrootcert=${strangerCa}`), /not trusted here/],
    [urlOf('guarded:wr0ng-s3cret', `sslmode=verify-full&sslrootcert=${ca}`), /user or password is wrong/],
    [urlOf('worker', `sslmode=verify-full&sslrootcert=${ca}`), /certificate/],
    [
      urlOf('worker', `sslmode=verify-full&sslrootcert=${ca}&sslcert=${stranger.cert}&sslkey=${stranger.key}`),
      /certificate/,
    ],
    // This role is let in without a password, so nothing is bound.
    [urlOf('postgres', `sslmode=verify-full&sslrootcert=${ca}&channel_binding=require`), /does not bind the login/],
    [
      urlOf('guarded:s3cret', `sslmode=verify-full&sslrootcert=/nowhere/ca.pem`),
      /sslrootcert names a file that cannot/,
    ],
  ]
  for (const [url, why] of wrong) {
    const error = await open(url).then(
      () => null,
      (thrown: unknown) => thrown,
    )
    assert.ok(isMillraceError(error), `${why}: ${inspect(error)}`)
    assert.equal(error.code, 'ERR_STORAGE_OPEN', error.message)
    assert.match(error.message, why)
    assert.doesNotMatch(inspect(error, { depth: 10 }), /s3cret/)
  }
})

test('parameters that protect and that the driver does not heed are refused', async () => {
  const wrong: readonly (readonly [parameters: string, why: RegExp])[] = [
    ['sslmode=verify_full', /sslmode=verify_full; it is one of/],
    ['sslmode=allow', /sslmode=allow/],
    ['sslmode=verify-full&sslcrl=/a', /'sslcrl', which the driver does not heed; pass a Pool/],
    ['sslpassword=x', /does not heed/],
    ['ssl_min_protocol_version=TLSv1.3', /does not heed/],
    ['require_auth=scram-sha-256', /does not heed/],
    ['channel_binding=maybe', /disable, prefer or require/],
    ['channel_binding=require', /no TLS; add sslmode=verify-full/],
  ]
  for (const [parameters, message] of wrong)
    await assert.rejects(open(urlOf('postgres', parameters)), { code: 'ERR_ENGINE_URL', message }, parameters)
})
