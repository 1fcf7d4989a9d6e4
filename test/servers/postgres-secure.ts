/** A Postgres with TLS. Its administrator needs neither TLS nor a password; see postgres-keeper.ts for the others. */
import { chmodSync, chownSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Certificates, makeCertificates } from './certificates.ts'
import { type PostgresServer, query, startPostgres } from './postgres.ts'

export interface SecurePostgres extends PostgresServer {
  readonly certificates: Certificates
  /** Over TLS with a verified certificate, as a role that may create schemas and no more. */
  readonly engineUrl: string
}

/** May log in with this password alone. */
export const GUARDED = Object.freeze({ user: 'guarded', password: 's3cret' })
/** Whom Postgres runs as where root starts it. */
const NOBODY = 65_534

/** `expired`: the server's certificate is no longer valid. */
export async function startSecurePostgres(which: 'server' | 'expired' = 'server'): Promise<SecurePostgres> {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-postgres-tls-'))
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
  const certificates = makeCertificates(folder)
  const { ca, [which]: own } = certificates
  // Postgres takes its key only from a file of its own that nobody else reads.
  chmodSync(folder, 0o755)
  chmodSync(own.key, 0o600)
  if (process.getuid?.() === 0) chownSync(own.key, NOBODY, NOBODY)
  const server = await startPostgres([
    'ssl=on',
    `ssl_cert_file=${own.cert}`,
    `ssl_key_file=${own.key}`,
    `ssl_ca_file=${ca}`,
  ])
  const { user, password } = GUARDED
  await query(server.url, `create role ${user} login password '${password}'`)
  await query(server.url, `grant create on database postgres to ${user}`)
  await query(server.url, 'create role worker login')
  await query(server.url, 'grant create on database postgres to worker')
  const login = server.url.replace('//postgres@', `//${user}:${password}@`)
  return { ...server, certificates, engineUrl: `${login}?sslmode=verify-full&sslrootcert=${ca}` }
}
