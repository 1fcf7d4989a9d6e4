import { parseTls, secretOf, TLS_NAMES, type TlsFiles } from '../../engine/secure-url.ts'
import { EngineError } from '../../errors.ts'
import { redactUrl } from '../../job/error-record.ts'
import { type HostPort, joinHosts, splitHosts, type Together } from './hosts.ts'

/** Options of the engine, from its URL or beside a client. */
export interface RedisOptions {
  /** Prefix of every key: BullMQ's `prefix`. Default: 'bull'. */
  readonly prefix?: string
  /** How long a call may wait for a connection, and then for its answer. Default: 5s. */
  readonly answerMs?: number
  /** How often a waiting claim looks by itself, if no wake-up comes. Default: 5s. */
  readonly pollMs?: number
  /** How many replicas must have a job before `enqueue` resolves. Default: 0, which does not ask. */
  readonly replicas?: number
}

/** Where the server is and how to log in. */
export interface RedisAddress {
  readonly host: string
  readonly port: number
  readonly db: number
  readonly username: string | null
  /** A function is asked for every connection. */
  readonly password: string | (() => string) | null
  /** Null: without. */
  readonly tls: TlsFiles | null
  /** Whom to ask which server is the primary; host and port are then the first of them. */
  readonly sentinel?: SentinelAddress
}

export interface SentinelAddress {
  readonly sentinels: readonly HostPort[]
  /** Under which the sentinels know the primary. */
  readonly name: string
  readonly username: string | null
  readonly password: (() => string) | null
}

export const DEFAULTS: Required<RedisOptions> = Object.freeze({
  prefix: 'bull',
  answerMs: 5_000,
  pollMs: 5_000,
  replicas: 0,
})

const OWN = ['prefix', 'timeout', 'poll', 'replicas', 'passwordFile', 'passwordEnv', ...TLS_NAMES] as const
const OF_SENTINELS = ['name', 'sentinelUsername', 'sentinelPasswordFile', 'sentinelPasswordEnv'] as const
const FORM =
  `give 'redis://user:password@host:6379/0?prefix=bull' (rediss: for TLS), 'redis+cluster://host:port,host:port' or ` +
  `'redis+sentinel://host:port,host:port/0?name=jobs'; the parameters are ${OWN.join(', ')}, and for sentinels ${OF_SENTINELS.join(', ')}`
/** No spaces, line ends or characters of SCAN patterns: such keys could not be found again. */
const PREFIX = /^[^\s*?[\]\\^]*[^\s*?[\]\\^:]$/
const DATABASE = /^\/?(\d{1,5})?$/
const TIMER_MS_MAX = 2 ** 31 - 1

export interface ParsedUrl {
  readonly together: Together
  readonly address: RedisAddress
  readonly options: Required<RedisOptions>
  /** Every server that the URL names. */
  readonly nodes: readonly HostPort[]
}

/** Unknown parameters are refused: a misspelt one would silently change nothing. */
export function parseUrl(text: string): ParsedUrl {
  const refuse = (why: string): never => {
    throw new EngineError('ERR_ENGINE_URL', `'${redactUrl(text)}' ${why}; ${FORM}`)
  }
  const { together, first, others } = splitHosts(text)
  const url = URL.parse(first)
  if (url === null) return refuse('is not a URL')
  if (url.hostname === '') return refuse('names no server')
  refuseUnknown(url, together, refuse)
  const isTls = url.protocol === 'rediss:'
  const idle = isTls ? undefined : TLS_NAMES.find((name) => url.searchParams.has(name))
  if (idle !== undefined) refuse(`has '${idle}' and no TLS; write rediss:`)
  const elsewhere = secretOf(url.searchParams, 'password', refuse)
  if (elsewhere !== null && url.password !== '') refuse('has two passwords; give one')
  const database = DATABASE.exec(url.pathname)
  if (database === null) return refuse(`has the database '${url.pathname.slice(1)}', which is not a number`)
  if (together === 'cluster' && Number(database[1] ?? 0) > 0) refuse('has a database; a cluster has only number 0')
  const defaultPort = together === 'sentinel' ? SENTINEL_PORT : SERVER_PORT
  const nodes = [url, ...others.map((host) => URL.parse(`redis://${host}`))].map((node) =>
    node === null || node.hostname === '' ? refuse('names a server that is no host:port') : hostOf(node, defaultPort),
  )
  const { host, port } = hostOf(url, defaultPort)
  return {
    together,
    nodes,
    address: {
      host,
      port,
      db: Number(database[1] ?? 0),
      username: decoded(url.username, refuse),
      password: elsewhere ?? decoded(url.password, refuse),
      tls: isTls ? parseTls(url.searchParams, refuse) : null,
      ...(together === 'sentinel' && { sentinel: sentinelOf(url.searchParams, nodes, refuse) }),
    },
    options: optionsOf(url.searchParams, together, refuse),
  }
}

const SERVER_PORT = 6379
const SENTINEL_PORT = 26379

function hostOf({ hostname, port }: URL, defaultPort: number): HostPort {
  return { host: hostname.replace(/^\[(.*)\]$/, '$1'), port: port === '' ? defaultPort : Number(port) }
}

type Refuse = (why: string) => never

function refuseUnknown({ searchParams }: URL, together: Together, refuse: Refuse): void {
  const known: readonly string[] = together === 'sentinel' ? [...OWN, ...OF_SENTINELS] : OWN
  for (const name of searchParams.keys()) {
    if (!known.includes(name)) refuse(`has an unknown parameter '${name}'`)
    if (searchParams.getAll(name).length > 1) refuse(`has '${name}' twice`)
  }
}

function sentinelOf(parameters: URLSearchParams, sentinels: readonly HostPort[], refuse: Refuse): SentinelAddress {
  const name = parameters.get('name') ?? ''
  if (name === '') refuse(`does not say which primary: add the name that the sentinels know it by, such as ?name=jobs`)
  const password = secretOf(parameters, 'sentinelPassword', refuse)
  return { sentinels, name, username: parameters.get('sentinelUsername'), password }
}

function optionsOf(parameters: URLSearchParams, together: Together, refuse: Refuse): Required<RedisOptions> {
  const whole = (name: 'timeout' | 'poll' | 'replicas', what: string, least: number, otherwise: number): number => {
    const given = parameters.get(name)
    const value = Number(given ?? otherwise)
    if (!Number.isInteger(value) || value < least || value > TIMER_MS_MAX || given === '') {
      refuse(`has ${name}=${given}, which is not ${what}`)
    }
    return value
  }
  const prefix = parameters.get('prefix') ?? DEFAULTS.prefix
  if (!isPrefix(prefix))
    refuse(`has the prefix '${prefix}'; it may have no spaces, none of *?[]\\^ and no ':' at its end`)
  if (together === 'cluster' && hasTag(prefix))
    refuse(`has the prefix '${prefix}'; on a cluster it may have no braces, because each type gets its own`)
  return {
    prefix,
    answerMs: whole('timeout', 'a number of milliseconds above 0', 1, DEFAULTS.answerMs),
    pollMs: whole('poll', 'a number of milliseconds above 0', 1, DEFAULTS.pollMs),
    replicas: whole('replicas', 'a number of replicas', 0, DEFAULTS.replicas),
  }
}

/** Braces in a key say which part of it decides about its slot. */
export function hasTag(prefix: string): boolean {
  return /[{}]/.test(prefix)
}

export function isPrefix(prefix: string): boolean {
  return PREFIX.test(prefix)
}

function decoded(text: string, refuse: Refuse): string | null {
  if (text === '') return null
  try {
    return decodeURIComponent(text)
  } catch {
    return refuse('has a user or password with a stray %; write it as %25')
  }
}

/** A renewal is one short script; waiting longer on a dead connection would cost the leases. */
const RENEW_MS = 5_000

/** For the renewal thread, which sends one script at a time and never waits for work. */
export function threadUrlOf(text: string, answerMs: number): string {
  const hosts = splitHosts(text)
  const url = new URL(hosts.first)
  url.searchParams.set('timeout', String(Math.min(answerMs, RENEW_MS)))
  return joinHosts(hosts, url)
}
