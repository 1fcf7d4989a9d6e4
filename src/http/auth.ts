import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { OptionError } from '../errors.ts'
import type { OptionNames } from '../job/known-options.ts'
import { ROLES, type Role } from './contract/route.ts'
import { HttpError } from './problems.ts'

/** A bearer token, its role, and the name in the audit. */
export interface AdminToken {
  readonly token: string
  readonly role: Role
  readonly who: string
}

export interface Caller {
  readonly who: string
  readonly role: Role
}

/** Names the caller when there are no tokens. */
export const WHO_HEADER = 'x-millrace-who'
const WHO_LENGTH_MAX = 100
const TOKEN_LENGTH_MIN = 16
const TOKEN = /^[\x21-\x7e]+$/

export type Authenticate = (headers: Headers) => Caller

/**
 * Identifies the caller. Both sides are hashed with a key of this process and every token is compared, so response times
 * reveal neither a token's length nor how much of it was right.
 */
export function authentication(tokens: readonly AdminToken[]): Authenticate {
  if (tokens.length === 0) return (headers) => ({ who: localName(headers), role: 'admin' })
  const key = randomBytes(32)
  const digest = (text: string): Buffer => createHmac('sha256', key).update(text).digest()
  const known = tokens.map((one) => ({ caller: checkToken(one), digest: digest(one.token) }))
  if (new Set(tokens.map(({ token }) => token)).size < tokens.length) {
    throw new OptionError(`'tokens' has the same token twice; give each caller its own`)
  }
  return (headers) => {
    const given = digest(/^bearer +(\S+) *$/i.exec(headers.get('authorization') ?? '')?.[1] ?? '')
    const [found] = known.filter((one) => timingSafeEqual(one.digest, given))
    if (found !== undefined) return found.caller
    throw new HttpError(401, 'ERR_UNAUTHENTICATED', `send 'Authorization: Bearer' with a valid token`, {
      headers: { 'www-authenticate': 'Bearer realm="millrace"' },
    })
  }
}

const TOKEN_NAMES: OptionNames<AdminToken> = { token: true, role: true, who: true }

/** Messages never contain the token. */
function checkToken(given: AdminToken): Caller {
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
  return { who: who.trim(), role }
}

function localName(headers: Headers): string {
  const name = headers.get(WHO_HEADER)
  if (name === null) return 'local'
  if (isName(name)) return name.trim()
  throw new HttpError(
    400,
    'ERR_REQUEST_INVALID',
    `'${WHO_HEADER}' must be 1 to ${WHO_LENGTH_MAX} printable characters; the audit stores it`,
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
  throw new HttpError(403, 'ERR_FORBIDDEN', `this needs the role ${needed}, and the token has ${role}`)
}
