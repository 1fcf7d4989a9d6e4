import { parseTls, secretOf, TLS_NAMES, type TlsFiles } from '../../engine/secure-url.ts'
import { EngineError } from '../../errors.ts'
import { redactUrl } from '../../job/error-record.ts'

/** Options of the engine, from its URL or beside a client. */
export interface RedisOptions {
  /** Prefix of every key: BullMQ's `prefix`. Default: 'bull'. */
  readonly prefix?: string
  /** How long a call may wait for a connection, and then for its answer. Default: 5s. */
  readonly answerMs?: number
  /** How often a waiting claim looks by itself, if no wake-up comes. Default: 5s. */
  readonly pollMs?: number
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
}

export const DEFAULTS: Required<RedisOptions> = Object.freeze({
  prefix: 'bull',
  answerMs: 5_000,
  pollMs: 5_000,
})

const OWN = ['prefix', 'timeout', 'poll', 'passwordFile', 'passwordEnv', ...TLS_NAMES] as const
const FORM = `give 'redis://user:password@host:6379/0?prefix=bull' (rediss: for TLS); the parameters are ${OWN.join(', ')}`
/** No spaces, line ends or characters of SCAN patterns: such keys could not be found again. */
const PREFIX = /^[^\s*?[\]\\^]*[^\s*?[\]\\^:]$/
const DATABASE = /^\/?(\d{1,5})?$/
const TIMER_MS_MAX = 2 ** 31 - 1

/** `redis://…` or `rediss://…`. Unknown parameters are refused: a misspelt one would silently change nothing. */
export function parseUrl(text: string): { readonly address: RedisAddress; readonly options: Required<RedisOptions> } {
  const refuse = (why: string): never => {
    throw new EngineError('ERR_ENGINE_URL', `'${redactUrl(text)}' ${why}; ${FORM}`)
  }
  const url = URL.parse(text)
  if (url === null) return refuse('is not a URL')
  if (url.hostname === '') return refuse('names no server')
  for (const name of url.searchParams.keys()) {
    if (!OWN.some((own) => own === name)) refuse(`has an unknown parameter '${name}'`)
    if (url.searchParams.getAll(name).length > 1) refuse(`has '${name}' twice`)
  }
  const isTls = url.protocol === 'rediss:'
  const idle = isTls ? undefined : TLS_NAMES.find((name) => url.searchParams.has(name))
  if (idle !== undefined) refuse(`has '${idle}' and no TLS; write rediss:`)
  const elsewhere = secretOf(url.searchParams, 'password', refuse)
  if (elsewhere !== null && url.password !== '') refuse('has two passwords; give one')
  const database = DATABASE.exec(url.pathname)
  if (database === null) return refuse(`has the database '${url.pathname.slice(1)}', which is not a number`)
  const whole = (name: 'timeout' | 'poll', otherwise: number): number => {
    const given = url.searchParams.get(name)
    const value = Number(given ?? otherwise)
    if (!Number.isInteger(value) || value < 1 || value > TIMER_MS_MAX || given === '') {
      refuse(`has ${name}=${given}, which is not a number of milliseconds above 0`)
    }
    return value
  }
  const prefix = url.searchParams.get('prefix') ?? DEFAULTS.prefix
  if (!isPrefix(prefix))
    refuse(`has the prefix '${prefix}'; it may have no spaces, none of *?[]\\^ and no ':' at its end`)
  return {
    address: {
      host: url.hostname.replace(/^\[(.*)\]$/, '$1'),
      port: url.port === '' ? 6379 : Number(url.port),
      db: Number(database[1] ?? 0),
      username: decoded(url.username, refuse),
      password: elsewhere ?? decoded(url.password, refuse),
      tls: isTls ? parseTls(url.searchParams, refuse) : null,
    },
    options: { prefix, answerMs: whole('timeout', DEFAULTS.answerMs), pollMs: whole('poll', DEFAULTS.pollMs) },
  }
}

export function isPrefix(prefix: string): boolean {
  return PREFIX.test(prefix)
}

function decoded(text: string, refuse: (why: string) => never): string | null {
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
  const url = new URL(text)
  url.searchParams.set('timeout', String(Math.min(answerMs, RENEW_MS)))
  return url.href
}
