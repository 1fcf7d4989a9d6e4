/**
 * Logins and read-only links as signed values. The key comes from the token, so every process with the same tokens accepts
 * them, a restart ends none, and removing a token ends all that it signed.
 */
import { randomBytes, timingSafeEqual } from 'node:crypto'
import { z } from 'zod'
import type { Clock } from '../time/clock.ts'
import type { Caller, KnownToken } from './auth.ts'
import { ROLES } from './contract/route.ts'

const HOUR_MS = 3_600_000
/** How long an unused login is kept. */
export const IDLE_MS_MAX = 12 * HOUR_MS
/** How long a login is kept by using it. */
export const LOGIN_MS_MAX = 30 * 24 * HOUR_MS
const RENEW_AFTER_MS = HOUR_MS
const ENDED_MAX = 10_000
const VALUE_LENGTH_MAX = 2_000

/** What is signed. The token is named, so that its key is found; its rights are those that it has now. */
const Grant = z.strictObject({
  who: z.string(),
  role: z.enum(ROLES),
  kind: z.enum(['login', 'link']),
  id: z.string(),
  sinceMs: z.number(),
  untilMs: z.number(),
})
type Grant = z.output<typeof Grant>

export interface Session {
  readonly caller: Caller
  /** The same login for longer; null while it need not be renewed, and for a link. */
  readonly renewed: string | null
}

export class Sessions {
  readonly #tokens: readonly KnownToken[]
  readonly #clock: Clock
  /** Sessions that were logged out here, until they would have expired. */
  readonly #ended = new Map<string, number>()

  constructor(tokens: readonly KnownToken[], clock: Clock) {
    this.#tokens = tokens
    this.#clock = clock
  }

  login(token: KnownToken): string {
    const nowMs = this.#clock.nowMs()
    return signed(token, { kind: 'login', id: newId(), sinceMs: nowMs, untilMs: nowMs + IDLE_MS_MAX })
  }

  /** Lets its holder look until then. */
  link(token: KnownToken, untilMs: number): string {
    return signed(token, { kind: 'link', id: newId(), sinceMs: this.#clock.nowMs(), untilMs })
  }

  /** A session of one who follows a link; null if the link has ended or is not from here. Logging out ends only this one. */
  follow(link: string): string | null {
    const opened = this.#open(link)
    if (opened?.grant.kind !== 'link') return null
    return signed(opened.token, { ...opened.grant, id: newId() })
  }

  find(value: string): Session | null {
    const opened = this.#open(value)
    if (opened === null) return null
    const { grant, token } = opened
    if (grant.kind === 'link') {
      const { untilMs } = grant
      return { caller: { who: `link of ${token.who}`, role: 'viewer', by: 'link', untilMs, token }, renewed: null }
    }
    const { who, role } = token
    return { caller: { who, role, by: 'login', untilMs: null, token }, renewed: this.#renewed(token, grant) }
  }

  end(value: string): void {
    const opened = this.#open(value)
    if (opened === null) return
    const nowMs = this.#clock.nowMs()
    for (const [id, untilMs] of this.#ended) {
      if (untilMs <= nowMs || this.#ended.size >= ENDED_MAX) this.#ended.delete(id)
    }
    // A renewed value of the same login may be on its way, and is valid for longer.
    this.#ended.set(opened.grant.id, Math.max(opened.grant.untilMs, nowMs + IDLE_MS_MAX))
  }

  #renewed(token: KnownToken, { sinceMs, untilMs, id, kind }: Grant): string | null {
    const nextMs = Math.min(this.#clock.nowMs() + IDLE_MS_MAX, sinceMs + LOGIN_MS_MAX)
    return nextMs - untilMs < RENEW_AFTER_MS ? null : signed(token, { kind, id, sinceMs, untilMs: nextMs })
  }

  #open(value: string): { readonly grant: Grant; readonly token: KnownToken } | null {
    const [text = '', mark = ''] = value.split('.')
    const grant = value.length > VALUE_LENGTH_MAX ? null : parsed(text)
    if (grant === null || grant.untilMs <= this.#clock.nowMs() || this.#ended.has(grant.id)) return null
    const named = this.#tokens.filter(({ who, role }) => who === grant.who && role === grant.role)
    const token = named.find((one) => isSame(one.sign(text), Buffer.from(mark, 'base64url')))
    return token === undefined ? null : { grant, token }
  }
}

function signed(token: KnownToken, { kind, id, sinceMs, untilMs }: Omit<Grant, 'who' | 'role'>): string {
  const grant: Grant = { who: token.who, role: token.role, kind, id, sinceMs, untilMs }
  const text = Buffer.from(JSON.stringify(grant)).toString('base64url')
  return `${text}.${token.sign(text).toString('base64url')}`
}

function parsed(text: string): Grant | null {
  try {
    return Grant.safeParse(JSON.parse(Buffer.from(text, 'base64url').toString('utf8'))).data ?? null
  } catch {
    return null
  }
}

function isSame(one: Buffer, other: Buffer): boolean {
  return one.length === other.length && timingSafeEqual(one, other)
}

function newId(): string {
  return randomBytes(12).toString('base64url')
}
