/** A Redis with TLS and users. On its port without TLS everybody may do everything, for the tests themselves. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Certificates, makeCertificates } from './certificates.ts'
import { freePort } from './free-port.ts'
import { type OwnRedis, startRedis, withRedis } from './redis.ts'

export interface SecureRedis extends OwnRedis {
  readonly certificates: Certificates
  /** `host:port` with TLS. */
  readonly secure: string
  /** Over TLS, as a user with the rights of docs/operating-redis.md. */
  readonly engineUrl: string
}

/** May use keys and channels under `bull` and under the prefixes of tests. */
export const WORKER = Object.freeze({ user: 'worker', password: 's3cret' })
/** As docs/operating-redis.md has it. */
const RIGHTS = ['~bull:*', '&bull:*', '~case_*', '&case_*', '+@all', '-@admin', '-@dangerous', '+info']

/** `expired`: the server's certificate is no longer valid. */
export async function startSecureRedis(which: 'server' | 'expired' = 'server'): Promise<SecureRedis> {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-redis-tls-'))
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
  const certificates = makeCertificates(folder)
  const { ca, [which]: own } = certificates
  const port = await freePort()
  const server = await startRedis({
    settings: {
      'tls-port': String(port),
      'tls-cert-file': own.cert,
      'tls-key-file': own.key,
      'tls-ca-cert-file': ca,
      'tls-auth-clients': 'optional',
    },
  })
  const { user, password } = WORKER
  await withRedis(server.url, (redis) => redis.call('ACL', 'SETUSER', user, 'on', `>${password}`, ...RIGHTS))
  const secure = `127.0.0.1:${port}`
  return { ...server, certificates, secure, engineUrl: `rediss://${user}:${password}@${secure}?ca=${ca}` }
}
