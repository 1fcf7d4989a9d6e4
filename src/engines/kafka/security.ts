/** TLS and SASL, and how the URL asks for them. What the client is given is in driver.ts. */
import { parseTls, secretOf, TLS_NAMES, type TlsFiles } from '../../engine/secure-url.ts'

/** A secret, or a function that is asked for it at every new connection, so that it can change. */
export type Secret = string | (() => string | Promise<string>)

export type KafkaSasl =
  | {
      readonly mechanism: 'plain' | 'scram-sha-256' | 'scram-sha-512'
      readonly username: string
      readonly password: Secret
    }
  | {
      readonly mechanism: 'oauthbearer'
      readonly token: Secret
      /** Such as `{ logicalCluster: 'lkc-1' }`, where the brokers ask for them. */
      readonly extensions?: Readonly<Record<string, string>>
    }

/** Null: without. */
export interface KafkaSecurity {
  readonly tls: TlsFiles | null
  readonly sasl: KafkaSasl | null
}

const SASL_NAMES = ['passwordFile', 'passwordEnv', 'tokenFile', 'tokenEnv', 'extensions'] as const
export const SECURITY_NAMES = ['tls', 'sasl', ...TLS_NAMES, ...SASL_NAMES] as const

interface Login {
  readonly username: string | null
  readonly password: string | null
}

/** What the URL says about security. `refuse` ends with the reason; secrets are in none. */
export function parseSecurity(
  given: { readonly isTlsScheme: boolean; readonly login: Login; readonly parameters: URLSearchParams },
  refuse: (why: string) => never,
): KafkaSecurity {
  const { isTlsScheme, login, parameters } = given
  const flag = parameters.get('tls')
  if (flag !== null && flag !== 'true' && flag !== 'false') refuse(`has tls=${flag}, which is neither true nor false`)
  if (isTlsScheme && flag === 'false') refuse('is kafkas:, which is with TLS, and has tls=false')
  const hasTls = isTlsScheme || flag === 'true'
  const tls = hasTls ? parseTls(parameters, refuse) : null
  const idle = hasTls ? undefined : TLS_NAMES.find((name) => parameters.has(name))
  if (idle !== undefined) refuse(`has '${idle}' and no TLS; write kafkas: or tls=true`)
  const sasl = parseSasl(login, parameters, refuse)
  if (sasl !== null && isSentInClear(sasl) && !hasTls && flag === null)
    refuse(`would send its secret in clear text (sasl=${sasl.mechanism}); write kafkas:, or tls=false if that is meant`)
  return { tls, sasl }
}

/** Whether who listens learns the secret. SCRAM proves that both know it, and sends none. */
export function isSentInClear({ mechanism }: KafkaSasl): boolean {
  return mechanism === 'plain' || mechanism === 'oauthbearer'
}

function parseSasl(login: Login, parameters: URLSearchParams, refuse: (why: string) => never): KafkaSasl | null {
  const mechanism = parameters.get('sasl')
  const tokens = SASL_NAMES.find((name) => parameters.has(name))
  switch (mechanism) {
    case null:
      if (login.username !== null) refuse('has a user and no sasl; write sasl=scram-sha-512, or what the brokers take')
      if (tokens !== undefined) refuse(`has '${tokens}' and no sasl`)
      return null
    case 'plain':
    case 'scram-sha-256':
    case 'scram-sha-512': {
      const idle = (['tokenFile', 'tokenEnv', 'extensions'] as const).find((name) => parameters.has(name))
      if (idle !== undefined) refuse(`has '${idle}', which is for sasl=oauthbearer`)
      const { username } = login
      if (username === null || username === '')
        return refuse(`names no user; write kafkas://user@host?sasl=${mechanism}`)
      const elsewhere = secretOf(parameters, 'password', refuse)
      if (login.password !== null && elsewhere !== null) refuse('has two passwords; give one')
      const password = login.password ?? elsewhere
      if (password === null || password === '')
        return refuse('has no password; give user:password@, passwordFile or passwordEnv')
      return { mechanism, username, password }
    }
    case 'oauthbearer': {
      if (login.username !== null) refuse('has a user, but with sasl=oauthbearer the token says who it is')
      const token = secretOf(parameters, 'token', refuse)
      if (token === null) return refuse('has no token; give tokenFile or tokenEnv')
      if (parameters.has('passwordFile') || parameters.has('passwordEnv'))
        refuse('has a password, but sasl=oauthbearer takes a token')
      const extensions = parseExtensions(parameters.get('extensions'), refuse)
      return { mechanism, token, ...(extensions !== null && { extensions }) }
    }
    default:
      return refuse(`has sasl=${mechanism}; it is plain, scram-sha-256, scram-sha-512 or oauthbearer`)
  }
}

function parseExtensions(text: string | null, refuse: (why: string) => never): Readonly<Record<string, string>> | null {
  if (text === null) return null
  const pairs = text.split(',').map((pair) => /^([A-Za-z]+):(.+)$/.exec(pair)?.slice(1, 3) ?? null)
  if (pairs.includes(null)) refuse(`has extensions=${text}; write such as logicalCluster:lkc-1,identityPoolId:pool-2`)
  return Object.fromEntries(pairs.map((pair) => pair ?? []))
}
