import assert from 'node:assert/strict'
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { makeCertificates } from '../../test/servers/certificates.ts'
import { redactUrl } from '../job/error-record.ts'
import { servernameOf, tlsAdvice, tlsOptions } from './secure-url.ts'

const folder = mkdtempSync(join(tmpdir(), 'millrace-secure-url-'))
after(() => rmSync(folder, { recursive: true, force: true }))

/** All that were given so far. Node gives them in the next turn. */
async function warned(given: readonly Error[]): Promise<readonly string[]> {
  await setImmediate()
  return given.map(({ message }) => message)
}

test('certificates that are replaced are used from then on, and files that do not fit leave the last good ones with a warning', async (t) => {
  const given: Error[] = []
  const note = (warning: Error): void => void given.push(warning)
  process.on('warning', note)
  t.after(() => process.off('warning', note))
  const { client, stranger, ca } = makeCertificates(folder)
  const [cert, key] = [join(folder, 'used.pem'), join(folder, 'used.key')]
  const use = (from: typeof client): void => {
    copyFileSync(from.cert, cert)
    copyFileSync(from.key, key)
  }
  use(client)
  const options = tlsOptions({ ca, cert, key })
  const first = options.secureContext
  assert.equal(options.secureContext, first, 'the same files are the same context')
  // Halfway through a rotation.
  copyFileSync(stranger.cert, cert)
  assert.equal(options.secureContext, first)
  assert.equal(options.secureContext, first)
  const [mismatch, ...others] = await warned(given)
  assert.match(
    mismatch ?? '',
    /cannot be used: .*key.*fits its certificate.*; connections go on with what was last read/,
  )
  assert.deepEqual(others, [], 'once')
  writeFileSync(cert, 'no PEM')
  assert.equal(options.secureContext, first)
  rmSync(cert)
  assert.equal(options.secureContext, first)
  assert.match((await warned(given)).at(-1) ?? '', /cert names a file that cannot be read/)
  assert.equal(given.length, 3)
  use(stranger)
  assert.notEqual(options.secureContext, first)
  // What was put right and is wrong again is told again.
  rmSync(cert)
  void options.secureContext
  assert.equal((await warned(given)).length, 4)
  assert.ok(given.every((warning) => Reflect.get(warning, 'code') === 'MILLRACE_SECRET_NOT_READ'))
  assert.throws(() => tlsOptions({ ca, cert: client.cert, key: stranger.key }), {
    code: 'ERR_STORAGE_OPEN',
    message: /fits its certificate/,
  })
})

test('only a name is sent as the name of the server, and the given one goes first', () => {
  assert.deepEqual(
    ['broker.example.com', '127.0.0.1', '::1'].map((host) => servernameOf({}, host)),
    ['broker.example.com', null, null],
  )
  assert.equal(servernameOf({ servername: 'broker' }, '127.0.0.1'), 'broker')
})

test('every failure of a certificate has advice, and others have none', () => {
  const codes = ['CERT_HAS_EXPIRED', 'SELF_SIGNED_CERT_IN_CHAIN', 'ERR_TLS_CERT_ALTNAME_INVALID']
  for (const code of codes) assert.match(tlsAdvice(code) ?? '', /certificate.*;/)
  assert.match(tlsAdvice('ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED') ?? '', /client certificate/)
  assert.equal(tlsAdvice('ECONNREFUSED'), null)
})

test('a URL that cannot be read tells nothing of its login, whatever characters it has', () => {
  for (const login of ['u:geheim', 'u:gehe/im', 'u:g?e#heim', 'u:ge@heim', 'u:ge heim'])
    assert.equal(redactUrl(`kafkas://${login}@host:1?group=g`), 'kafkas://[redacted]@host:1?group=g')
  assert.equal(redactUrl('sqlite:./a.db'), 'sqlite:./a.db')
  assert.equal(redactUrl('sqlite:/jobs@night/a.db'), 'sqlite:/jobs@night/a.db')
  // Mistyped, and then shown in an error.
  assert.equal(redactUrl('redis//:secret@host:1'), '[redacted]@host:1')
  assert.equal(redactUrl('postgres:me:secret@host/db'), 'postgres:[redacted]@host/db')
})
