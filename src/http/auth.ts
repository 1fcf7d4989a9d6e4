import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { OptionError } from '../errors.ts'
import { ROLES, type Role } from './contract/route.ts'
import { Refused } from './problems.ts'

/** One bearer token, what it may do, and whom the audit names for it. */
export interface AdminToken {
  readonly token: string
  readonly role: Role
  readonly who: string
}

export interface Caller {
  readonly who: string
  readonly role: Role
}

/** Names the caller where no token does. */
export const WHO_HEADER = 'x-millrace-who'
const WHO_LENGTH_MAX = 100
const TOKEN_LENGTH_MIN = 16
const TOKEN = /^[\x21-\x7e]+$/

export type Authenticate = (headers: Headers) => Caller

/**
 * Who calls. Both sides are hashed under a key of this process and every token is compared, so neither a token's length
 * nor how much of it was right can be told from the time that an answer takes.
 */
export function authentication(tokens: readonly AdminToken[]): Authenticate {
  if (tokens.length === 0) return (headers) => ({ who: localName(headers), role: 'admin' })
  const key = randomBytes(32)
  const digest = (text: string): Buffer => createHmac('sha256', key).update(text).digest()
  const known = tokens.map((one) => ({ caller: checkToken(one), digest: digest(one.token) }))
  if (new Set(tokens.map(({ token }) => token)).size < tokens.length) {
    throw new OptionError(`'tokens' has the same token twice; give each caller one of its own`)
  }
  return (headers) => {
    const given = digest(/^bearer +(\S+) *$/i.exec(headers.get('authorization') ?? '')?.[1] ?? '')
    const [found] = known.filter((one) => timingSafeEqual(one.digest, given))
    if (found !== undefined) return found.caller
    throw new Refused(401, 'ERR_UNAUTHENTICATED', `send 'Authorization: Bearer' with a token that is known here`, {
      headers: { 'www-authenticate': 'Bearer realm="millrace"' },
    })
  }
}

/** A message never says what a token is, only what is wrong with it. */
function checkToken({ token, role, who }: AdminToken): Caller {
  if (typeof token !== 'string' || token.length < TOKEN_LENGTH_MIN || !TOKEN.test(token)) {
    throw new OptionError(
      `a token is too short or has spaces or signs beyond ASCII; give ${TOKEN_LENGTH_MIN} characters or more, such as from 'openssl rand -hex 32'`,
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
  throw new Refused(
    400,
    'ERR_REQUEST_INVALID',
    `'${WHO_HEADER}' must be 1 to ${WHO_LENGTH_MAX} printable characters; it stands in the audit`,
  )
}

function isName(text: unknown): text is string {
  return typeof text === 'string' && text.trim() !== '' && text.length <= WHO_LENGTH_MAX && !/\p{Cc}/u.test(text)
}

/** Each role may do what the one before may. */
export function mayAct(role: Role, needed: Role): boolean {
  return ROLES.indexOf(role) >= ROLES.indexOf(needed)
}

export function demandRole({ role }: Caller, needed: Role): void {
  if (mayAct(role, needed)) return
  throw new Refused(403, 'ERR_FORBIDDEN', `this takes the role ${needed}, and the token has ${role}`)
}
