/** Certificates for servers and clients of the tests, made by openssl: a CA of their own, and some that must be refused. */
import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

export interface Certificate {
  /** Paths of PEM files. */
  readonly cert: string
  readonly key: string
  /** Key and certificate in one file, as Java's brokers read them. */
  readonly both: string
}

export interface Certificates {
  readonly ca: string
  /** A CA that has signed nothing here. */
  readonly strangerCa: string
  /** For 127.0.0.1 and localhost. */
  readonly server: Certificate
  /** The same, and no longer valid. */
  readonly expired: Certificate
  /** CN=worker. */
  readonly client: Certificate
  /** Signed by the CA that nobody trusts. */
  readonly stranger: Certificate
}

const CURVE = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes']
const EXTENSIONS = 'subjectAltName=IP:127.0.0.1,DNS:localhost\n'

function openssl(folder: string, ...args: readonly string[]): void {
  execFileSync('openssl', args, { cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] })
}

function makeCa(folder: string, name: string): string {
  const files = ['-keyout', `${name}.key`, '-out', `${name}.pem`]
  openssl(folder, 'req', '-x509', ...CURVE, ...files, '-subj', `/CN=${name}`, '-days', '2')
  return join(folder, `${name}.pem`)
}

function sign(folder: string, name: string, given: { subject: string; ca?: string; days?: number }): Certificate {
  const { subject, ca = 'ca', days = 2 } = given
  openssl(folder, 'req', ...CURVE, '-keyout', `${name}.key`, '-out', `${name}.csr`, '-subj', `/CN=${subject}`)
  const signer = ['-CA', `${ca}.pem`, '-CAkey', `${ca}.key`, '-CAcreateserial', '-days', String(days)]
  openssl(folder, 'x509', '-req', '-in', `${name}.csr`, ...signer, '-extfile', 'extensions', '-out', `${name}.pem`)
  const [cert, key, both] = [`${name}.pem`, `${name}.key`, `${name}-both.pem`].map((file) => join(folder, file))
  if (cert === undefined || key === undefined || both === undefined) throw new Error('three names are three paths')
  writeFileSync(both, readFileSync(key, 'utf8') + readFileSync(cert, 'utf8'))
  return { cert, key, both }
}

/** Takes some 0.2 s. */
export function makeCertificates(folder: string): Certificates {
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'extensions'), EXTENSIONS)
  return {
    ca: makeCa(folder, 'ca'),
    strangerCa: makeCa(folder, 'stranger-ca'),
    server: sign(folder, 'server', { subject: 'localhost' }),
    expired: sign(folder, 'expired', { subject: 'localhost', days: -1 }),
    client: sign(folder, 'client', { subject: 'worker' }),
    stranger: sign(folder, 'stranger', { subject: 'worker', ca: 'stranger-ca' }),
  }
}
