import { readSecret } from '../../engine/secure-url.ts'
import { EngineError } from '../../errors.ts'
import { redactUrl } from '../../job/error-record.ts'
import { nearest } from '../../job/known-options.ts'

/** Options of the engine, from its URL or given with a pool. */
export interface PostgresOptions {
  readonly schema?: string
  /** Use prepared statements. A transaction pooler does not keep them. Default: true. */
  readonly prepare?: boolean
  /** Most connections to open, not counting the one for LISTEN. Default: 8. */
  readonly pool?: number
  /** How often a waiting claim polls. NOTIFY only makes it faster. Default: 1s. */
  readonly pollMs?: number
  /** How long one statement may take before its connection is given up. Default: 30s. */
  readonly answerMs?: number
  /** Use LISTEN to be woken by other processes. It needs a connection that no pooler reassigns. Default: true. */
  readonly listen?: boolean
}

export interface PostgresAddress extends Required<PostgresOptions> {
  /** For the driver, without Millrace's parameters: one for each server of which one is the primary. */
  readonly servers: readonly string[]
  /** A role that the next migration grants the rights of a worker. */
  readonly grant: string | null
  /** Whether a transaction pooler is in between, which accepts no startup parameters. */
  readonly pooled: boolean
  readonly channelBinding: ChannelBinding
}

/** Whether the login is tied to the certificate of the server, so that nobody in between can pass it on. */
export type ChannelBinding = 'disable' | 'prefer' | 'require'

export const DEFAULTS: Required<PostgresOptions> = Object.freeze({
  schema: 'public',
  prepare: true,
  pool: 8,
  pollMs: 1_000,
  answerMs: 30_000,
  listen: true,
})

const OWN = ['schema', 'pooler', 'prepare', 'pool', 'poll', 'timeout', 'listen', 'grant'] as const
const FORM = `give 'postgres://user:password@host:5432/database?schema=public'; ours are ${OWN.join(', ')}`

/** Parameters of libpq, of `pg` and of its connection strings. */
const DRIVERS = new Set(
  `application_name binary channel_binding client_encoding connect_timeout connectionTimeoutMillis database dbname encoding
  fallback_application_name gssencmode gsslib host hostaddr idle_in_transaction_session_timeout idleTimeoutMillis keepalives
  keepalives_count keepalives_idle keepalives_interval krbsrvname load_balance_hosts lock_timeout max options passfile password
  pgbouncer port query_timeout replication require_auth requirepeer requiressl service ssl ssl_max_protocol_version
  ssl_min_protocol_version sslcert sslcompression sslcrl sslcrldir sslkey sslmode sslnegotiation sslpassword sslrootcert sslsni
  statement_timeout target_session_attrs tcp_user_timeout uselibpqcompat user`.split(/\s+/),
)

/** `postgres://…?schema=…`. Known parameters of the driver, such as `sslmode`, are passed on. Others are refused. */
export function parseUrl(text: string): PostgresAddress {
  const refuse = (why: string): never => {
    throw new EngineError('ERR_ENGINE_URL', `'${redactUrl(text)}' ${why}; ${FORM}`)
  }
  const { first, hosts } = splitHosts(text)
  const url = URL.parse(first)
  if (url === null) return refuse('is not a URL')
  if (url.hostname === '' && url.pathname === '') refuse('names no server')
  const given = new Map(OWN.map((name) => [name, url.searchParams.get(name)]))
  for (const name of OWN) url.searchParams.delete(name)
  for (const name of url.searchParams.keys()) {
    if (DRIVERS.has(name)) continue
    const near = nearest(name, [...OWN, ...DRIVERS])
    refuse(`has an unknown parameter '${name}'${near === null ? '' : `; did you mean '${near}'?`}`)
  }
  const target = url.searchParams.get('target_session_attrs') ?? 'read-write'
  if (!['read-write', 'primary', 'any'].includes(target))
    refuse(`has target_session_attrs=${target}; jobs are written, so it is read-write, primary or any`)
  if (url.searchParams.get('host')?.includes(',') === true)
    refuse(`has several hosts in a parameter; write 'postgres://user@first:5432,second:5432/database'`)
  const channelBinding = parseSecurity(url.searchParams, refuse)
  const pooler = given.get('pooler') ?? 'session'
  if (pooler !== 'session' && pooler !== 'transaction') refuse(`has an unknown pooler '${pooler}'`)
  const pooled = pooler === 'transaction'
  const flag = (name: 'prepare' | 'listen'): boolean => {
    const value = given.get(name) ?? String(!pooled)
    if (value !== 'true' && value !== 'false') refuse(`has ${name}=${value}, which is neither true nor false`)
    return value === 'true'
  }
  const whole = (name: 'pool' | 'poll' | 'timeout', otherwise: number): number => {
    const value = Number(given.get(name) ?? otherwise)
    if (!Number.isInteger(value) || value < 1)
      refuse(`has ${name}=${given.get(name)}, which is not a whole number above 0`)
    return value
  }
  return {
    servers: hosts.map(
      (host) => URL.parse(withHosts(url.href, host))?.href ?? refuse(`names '${host}', which is not a host`),
    ),
    schema: given.get('schema') ?? DEFAULTS.schema,
    prepare: flag('prepare'),
    listen: flag('listen'),
    pool: whole('pool', DEFAULTS.pool),
    pollMs: whole('poll', DEFAULTS.pollMs),
    answerMs: whole('timeout', DEFAULTS.answerMs),
    grant: given.get('grant') ?? null,
    pooled,
    channelBinding,
  }
}

const AUTHORITY = /^(\w+:\/\/(?:[^/?#]*@)?)([^/?#]*)(.*)$/s

/** The hosts of `postgres://user@first:5432,second:5432/database`, and the URL with the first of them alone. */
function splitHosts(text: string): { readonly first: string; readonly hosts: readonly string[] } {
  const [, before = '', authority = '', behind = ''] = AUTHORITY.exec(text) ?? []
  const [host = '', ...others] = authority.split(',')
  return others.length === 0
    ? { first: text, hosts: [host] }
    : { first: before + host + behind, hosts: [host, ...others] }
}

function withHosts(url: string, hosts: string): string {
  return url.replace(AUTHORITY, (_, before: string, _host: string, behind: string) => before + hosts + behind)
}

/** The same servers with other parameters. */
export function withParameters(text: string, parameters: Readonly<Record<string, string>>): string {
  const { first, hosts } = splitHosts(text)
  const url = new URL(first)
  for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value)
  return withHosts(url.href, hosts.join(','))
}

const SSL_MODES = ['disable', 'prefer', 'require', 'verify-ca', 'verify-full', 'no-verify']
/** Parameters of libpq that protect a connection and that `pg` takes without doing anything. */
const UNHEEDED = [
  'require_auth',
  'requirepeer',
  'requiressl',
  'ssl_max_protocol_version',
  'ssl_min_protocol_version',
  'sslcrl',
  'sslcrldir',
  'sslpassword',
]

/** What asks for protection is done or refused, never passed over. */
function parseSecurity(parameters: URLSearchParams, refuse: (why: string) => never): ChannelBinding {
  const unheeded = UNHEEDED.find((name) => parameters.has(name))
  if (unheeded !== undefined)
    refuse(`has '${unheeded}', which the driver does not heed; pass a Pool of pg with such settings to open()`)
  const mode = parameters.get('sslmode')
  if (mode !== null && !SSL_MODES.includes(mode)) refuse(`has sslmode=${mode}; it is one of ${SSL_MODES.join(', ')}`)
  for (const name of ['sslrootcert', 'sslcert', 'sslkey']) {
    const path = parameters.get(name)
    // The driver would say that no server answers.
    if (path !== null) readSecret(name, path)
  }
  // The driver does not know it from a URL.
  const binding = parameters.get('channel_binding') ?? 'prefer'
  parameters.delete('channel_binding')
  if (binding !== 'disable' && binding !== 'prefer' && binding !== 'require')
    return refuse(`has channel_binding=${binding}; it is disable, prefer or require`)
  const hasTls =
    (mode !== null && mode !== 'disable') || parameters.has('sslrootcert') || parameters.get('ssl') === 'true'
  if (binding === 'require' && !hasTls) refuse('has channel_binding=require and no TLS; add sslmode=verify-full')
  return binding
}
