/** TLS and secrets in the URLs of engines: `ca=/path/to/ca.pem`, `passwordFile=/run/secrets/password`. */
import { readFileSync } from 'node:fs'
import { isIP } from 'node:net'
import { createSecureContext, type SecureContext, type SecureContextOptions } from 'node:tls'
import { isDeepStrictEqual } from 'node:util'
import { EngineError, messageOf } from '../errors.ts'

export interface TlsFiles {
  /** Paths of PEM files, read anew for every connection. `ca`: who is trusted; default: the authorities that Node trusts. */
  readonly ca?: string
  /** The certificate that this client shows, with its key. */
  readonly cert?: string
  readonly key?: string
  readonly keyPassword?: () => string
  /** The name that the certificate of the server must have; default: its host. */
  readonly servername?: string
}

export const TLS_NAMES = ['ca', 'cert', 'key', 'keyPasswordFile', 'keyPasswordEnv', 'servername'] as const

type Refuse = (why: string) => never

export function parseTls(parameters: URLSearchParams, refuse: Refuse): TlsFiles {
  if (parameters.has('cert') !== parameters.has('key'))
    refuse('has one of cert and key; a client certificate needs both')
  const keyPassword = secretOf(parameters, 'keyPassword', refuse)
  if (keyPassword !== null && !parameters.has('key')) refuse('has a password for a key, and no key')
  const [ca, cert, key, servername] = ['ca', 'cert', 'key', 'servername'].map((name) => {
    if (parameters.get(name) === '') refuse(`has an empty '${name}'`)
    return parameters.get(name)
  })
  return {
    ...(ca && { ca }),
    ...(cert && { cert }),
    ...(key && { key }),
    ...(keyPassword !== null && { keyPassword }),
    ...(servername && { servername }),
  }
}

/** From a file or a variable of the environment: `passwordFile=/run/secrets/kafka`, `passwordEnv=KAFKA_PASSWORD`. */
export function secretOf(
  parameters: URLSearchParams,
  name: 'password' | 'token' | 'keyPassword' | 'sentinelPassword',
  refuse: Refuse,
): (() => string) | null {
  const [file, variable] = [parameters.get(`${name}File`), parameters.get(`${name}Env`)]
  if (file !== null && variable !== null) refuse(`has ${name}File and ${name}Env; give one`)
  if (file === '' || variable === '') refuse(`has an empty ${name}${file === '' ? 'File' : 'Env'}`)
  if (file !== null) return () => readSecret(`${name}File`, file).trimEnd()
  if (variable === null) return null
  return () => {
    const value = process.env[variable]
    if (value !== undefined && value !== '') return value
    throw new EngineError('ERR_STORAGE_OPEN', `${name}Env names '${variable}', which is not set; set it to the secret`)
  }
}

/** Also of certificates. `parameter`: of the URL, for the error. */
export function readSecret(parameter: string, path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    const text = `${parameter} names a file that cannot be read: ${messageOf(error)}; correct the path or its rights`
    throw new EngineError('ERR_STORAGE_OPEN', text, { cause: error })
  }
}

/**
 * A value that is read again for every connection: secrets that live for hours are replaced without a restart. What cannot
 * be read must not throw in the middle of a client: the last value is used, and a warning says so, once until it changes.
 */
export function rereading<Value>(read: () => Value): () => Value {
  let last = read()
  let told: string | null = null
  return () => {
    try {
      last = read()
      told = null
    } catch (error) {
      const why = messageOf(error)
      if (why !== told) warn(why)
      told = why
    }
    return last
  }
}

function warn(why: string): void {
  process.emitWarning(`${why}; connections go on with what was last read, until the server refuses it`, {
    type: 'MillraceWarning',
    code: 'MILLRACE_SECRET_NOT_READ',
  })
}

/** Clients copy the fields for every connection. */
export function tlsOptions(tls: TlsFiles) {
  let last: { readonly texts: SecureContextOptions; readonly context: SecureContext } | null = null
  const read = rereading(() => {
    const texts = readTls(tls)
    if (last === null || !isDeepStrictEqual(texts, last.texts)) last = { texts, context: contextOf(texts) }
    return last.context
  })
  return {
    get secureContext(): SecureContext {
      return read()
    },
  }
}

function readTls({ ca, cert, key, keyPassword }: TlsFiles): SecureContextOptions {
  return {
    ...(ca !== undefined && { ca: readSecret('ca', ca) }),
    ...(cert !== undefined && { cert: readSecret('cert', cert) }),
    ...(key !== undefined && { key: readSecret('key', key) }),
    ...(keyPassword !== undefined && { passphrase: keyPassword() }),
  }
}

function contextOf(texts: SecureContextOptions): SecureContext {
  try {
    return createSecureContext(texts)
  } catch (error) {
    const text = `the files of ca, cert and key cannot be used: ${messageOf(error)}; give PEM files, a key that fits its certificate, and the password of the key if it has one`
    throw new EngineError('ERR_STORAGE_OPEN', text, { cause: error })
  }
}

/** Servers that share an address are told apart by this name (SNI), which must not be an IP address. */
export function servernameOf(tls: TlsFiles, host: string): string | null {
  return tls.servername ?? (isIP(host) === 0 ? host : null)
}

const CLIENT_CERTIFICATE = 'check that it has not expired, and that the server trusts who signed it'

/** By the code of Node's TLS or of OpenSSL. */
const TLS_ADVICE: readonly (readonly [pattern: RegExp, advice: string])[] = [
  [/^CERT_HAS_EXPIRED$/, 'the certificate of the server has expired; renew it on the server'],
  [/^CERT_NOT_YET_VALID$/, 'the certificate of the server is not valid yet; check the clocks of both machines'],
  [
    /^(UNABLE_TO_|SELF_SIGNED_|DEPTH_ZERO_|CERT_UNTRUSTED|CERT_SIGNATURE_FAILURE)/,
    `the certificate of the server is signed by an authority that is not trusted here; give the authority's certificate: ca=/path/to/ca.pem, or sslrootcert= for Postgres`,
  ],
  [
    /^ERR_TLS_CERT_ALTNAME_INVALID$/,
    'the certificate of the server is for another name; use that name in the URL, or say it with servername= (not for Postgres)',
  ],
  [
    /^ERR_SSL_.*(CERTIFICATE|UNKNOWN_CA)/,
    `the server refused the client certificate, or wants one and got none; ${CLIENT_CERTIFICATE}`,
  ],
  [/^ERR_(SSL|TLS|OSSL)_/, 'TLS failed; check that the port of the URL is one with TLS, and which versions both speak'],
]

/** What to say in place of the message of OpenSSL, which is about its source. Null for other codes. */
export function tlsText(code: string): string | null {
  return /^ERR_(SSL|OSSL)_/.test(code) ? code : null
}

/** What to do about a failure of TLS, by its code. Null for other codes. */
export function tlsAdvice(code: string): string | null {
  return TLS_ADVICE.find(([pattern]) => pattern.test(code))?.[1] ?? null
}
