import { createHmac, randomBytes, scryptSync, timingSafeEqual } from 'node:crypto'
import { OptionError } from '../errors.ts'
import type { OptionNames } from '../job/known-options.ts'
import { ROLES, type Role } from './contract/route.ts'
import type { SessionCookie } from './cookie.ts'
import { checkOwnPage } from './guards.ts'
import { HttpError } from './problems.ts'
import type { Sessions } from './sessions.ts'

/** A bearer token, its role, and the name in the audit. */
export interface AdminToken {
  readonly token: string
  readonly role: Role
  readonly who: string
}

export interface Caller {
  readonly who: string
  readonly role: Role
  /** How it is known: by its machine, a bearer token, a login, or a read-only link. */
  readonly by: 'machine' | 'token' | 'login' | 'link'
  /** When a read-only link ends; null for others. */
  readonly untilMs: number | null
  /** The token behind it; null without tokens. */
  readonly token: KnownToken | null
}

/** Names the caller when there are no tokens. */
export const WHO_HEADER = 'x-millrace-who'
const WHO_LENGTH_MAX = 100
const TOKEN_LENGTH_MIN = 16
const TOKEN = /^[\x21-\x7e]+$/
const HEADER_NAME = /^[A-Za-z0-9-]+$/

export type Authenticate = (request: Request) => Caller

const PROCESS_KEY = randomBytes(32)

function digestOf(text: string): Buffer {
  return createHmac('sha256', PROCESS_KEY).update(text).digest()
}

/** A token of this server. It can be compared and can sign, and is itself never read again. */
export class KnownToken {
  readonly who: string
  readonly role: Role
  readonly #token: string
  readonly #digest: Buffer
  #key: Buffer | null = null

  constructor({ token, role, who }: AdminToken) {
    this.who = who
    this.role = role
    this.#token = token
    this.#digest = digestOf(token)
  }

  matches(digest: Buffer): boolean {
    return timingSafeEqual(this.#digest, digest)
  }

  /** The key is made slowly, once: a link is signed by it, and must not help anybody to guess a weak token. */
  sign(text: string): Buffer {
    this.#key ??= scryptSync(this.#token, 'millrace session', 32)
    return createHmac('sha256', this.#key).update(text).digest()
  }
}

export function knownTokens(tokens: readonly AdminToken[]): readonly KnownToken[] {
  const known = tokens.map((one) => new KnownToken(checkToken(one)))
  if (new Set(tokens.map(({ token }) => token)).size < tokens.length) {
    throw new OptionError(`'tokens' has the same token twice; give each caller its own`)
  }
  return known
}

/**
 * The known token with this text, or null. Both sides are hashed with a key of this process and every token is compared, so
 * response times reveal neither a token's length nor how much of it was right.
 */
export function findToken(known: readonly KnownToken[], text: string): KnownToken | null {
  const digest = digestOf(text)
  const [found] = known.filter((one) => one.matches(digest))
  return found ?? null
}

export interface Identification {
  readonly tokens: readonly KnownToken[]
  readonly sessions: Sessions
  readonly cookie: SessionCookie
  /** The header with the user's name of a trusted proxy; null to ignore all. */
  readonly userHeader: string | null
}

/** Identifies callers: by their machine where there are no tokens, else by a bearer token or the cookie of a login. */
export function authentication({ tokens, sessions, cookie, userHeader }: Identification): Authenticate {
  const identify = (request: Request): Caller => {
    if (tokens.length === 0) {
      return { who: localName(request.headers), role: 'admin', by: 'machine', untilMs: null, token: null }
    }
    const bearer = /^bearer +(\S+) *$/i.exec(request.headers.get('authorization') ?? '')?.[1]
    const caller = bearer === undefined ? fromCookie(request) : fromToken(findToken(tokens, bearer))
    if (caller !== null) return caller
    throw unauthenticated(`log in, or send 'Authorization: Bearer' with a valid token`)
  }
  const fromCookie = (request: Request): Caller | null => {
    const found = cookie.find(request, sessions)
    if (found === null) return null
    checkOwnPage(request)
    return found.session.caller
  }
  return (request) => {
    const caller = identify(request)
    const user = userHeader === null ? null : userOf(request.headers, userHeader)
    return user === null ? caller : { ...caller, who: user }
  }
}

function fromToken(token: KnownToken | null): Caller | null {
  return token && { who: token.who, role: token.role, by: 'token', untilMs: null, token }
}

/** The token that signs what a caller hands on. */
export function demandToken({ token }: Caller): KnownToken {
  if (token === null) throw noTokens()
  return token
}

export function noTokens(): HttpError {
  const text = 'this server has no tokens: everybody on this machine is let in, and nobody else'
  return new HttpError(409, 'ERR_NO_TOKENS', text)
}

export function unauthenticated(message: string): HttpError {
  return new HttpError(401, 'ERR_UNAUTHENTICATED', message, {
    headers: { 'www-authenticate': 'Bearer realm="millrace"' },
  })
}

export function checkUserHeader(name: string | undefined): string | null {
  if (name === undefined) return null
  if (typeof name === 'string' && HEADER_NAME.test(name)) return name
  throw new OptionError(`'trustUserHeader' is '${name}'; give the name of a header, such as 'X-Forwarded-User'`)
}

/** The name that the proxy gives, or null. */
function userOf(headers: Headers, header: string): string | null {
  const name = fromBytes(headers.get(header) ?? '').trim()
  if (name === '') return null
  if (isName(name)) return name
  throw badName(header)
}

/** Headers are read byte by byte, and most proxies write UTF-8. */
function fromBytes(text: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.from(text, 'latin1'))
  } catch {
    return text
  }
}

const TOKEN_NAMES: OptionNames<AdminToken> = { token: true, role: true, who: true }

/** Messages never contain the token. */
function checkToken(given: AdminToken): AdminToken {
  if (!Object.keys(Object(given)).every((name) => Object.hasOwn(TOKEN_NAMES, name))) {
    throw new OptionError(`a token has properties other than ${Object.keys(TOKEN_NAMES).join(', ')}`)
  }
  const { token, role, who } = Object(given)
  if (typeof token !== 'string' || token.length < TOKEN_LENGTH_MIN || !TOKEN.test(token)) {
    throw new OptionError(
      `a token is too short, or has spaces or non-ASCII characters; give at least ${TOKEN_LENGTH_MIN} characters, such as from 'openssl rand -hex 32'`,
    )
  }
  if (!ROLES.includes(role)) throw new OptionError(`a token's 'role' is '${role}'; give one of ${ROLES.join(', ')}`)
  if (!isName(who)) throw new OptionError(`a token's 'who' must be 1 to ${WHO_LENGTH_MAX} printable characters`)
  return { token, who: who.trim(), role }
}

function localName(headers: Headers): string {
  const name = headers.get(WHO_HEADER)
  if (name === null) return 'local'
  if (isName(name)) return name.trim()
  throw badName(WHO_HEADER)
}

function badName(header: string): HttpError {
  return new HttpError(
    400,
    'ERR_REQUEST_INVALID',
    `'${header}' must be 1 to ${WHO_LENGTH_MAX} printable characters; the audit stores it`,
  )
}

function isName(text: unknown): text is string {
  return typeof text === 'string' && text.trim() !== '' && text.length <= WHO_LENGTH_MAX && !/\p{Cc}/u.test(text)
}

/** A role includes those before it. */
export function mayAct(role: Role, needed: Role): boolean {
  return ROLES.indexOf(role) >= ROLES.indexOf(needed)
}

export function demandRole({ role }: Caller, needed: Role): void {
  if (mayAct(role, needed)) return
  throw new HttpError(403, 'ERR_FORBIDDEN', `this needs the role ${needed}, and the caller has ${role}`)
}
