/** Logging in and out of the dashboard. Programs send their token with each request instead. */
import type { Context, Hono } from 'hono'
import { z } from 'zod'
import type { Clock } from '../time/clock.ts'
import { findToken, type Identification, noTokens, unauthenticated } from './auth.ts'
import { LOGIN_PATH, LOGOUT_PATH } from './contract/index.ts'
import { checkOwnPage } from './guards.ts'
import { HttpError } from './problems.ts'
import { checkedBody } from './routing.ts'

/** A token, or the value of a read-only link. */
const Login = z.union([
  z.strictObject({ token: z.string().min(1).max(1_000) }),
  z.strictObject({ link: z.string().min(1).max(2_000) }),
])

export interface LoginOptions extends Identification {
  readonly clock: Clock
  peer(request: Request, env: unknown): string | null
}

export function addLogin(app: Hono, { tokens, sessions, cookie, clock, peer }: LoginOptions): void {
  const attempts = new Attempts(clock)
  app.post(LOGIN_PATH, async ({ req, env }: Context) => {
    checkOwnPage(req.raw)
    if (tokens.length === 0) throw noTokens()
    const from = peer(req.raw, env) ?? ''
    const given = await checkedBody(Login, req.raw)
    attempts.check(from)
    const token = 'token' in given ? findToken(tokens, given.token) : null
    const value = 'link' in given ? sessions.follow(given.link) : token && sessions.login(token)
    if (value === null) {
      attempts.failed(from)
      throw unauthenticated('link' in given ? 'the link has ended, or is not from here' : 'there is no such token')
    }
    return done([cookie.forLogin(req.raw, value)])
  })
  app.post(LOGOUT_PATH, ({ req }: Context) => {
    checkOwnPage(req.raw)
    return done(cookie.end(req.raw, sessions))
  })
}

function done(cookies: readonly string[]): Response {
  const headers = new Headers({ 'cache-control': 'no-store' })
  for (const one of cookies) headers.append('set-cookie', one)
  return new Response(null, { status: 204, headers })
}

const FAILURES_MAX = 10
const WINDOW_MS = 60_000
const PEERS_MAX = 1_000

/** Failed logins by address. Behind a proxy all callers have its address. */
export class Attempts {
  readonly #clock: Clock
  readonly #failures = new Map<string, { count: number; readonly sinceMs: number }>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  check(peer: string): void {
    const { count, sinceMs } = this.#failures.get(peer) ?? { count: 0, sinceMs: 0 }
    const leftMs = sinceMs + WINDOW_MS - this.#clock.monotonicMs()
    if (count < FAILURES_MAX || leftMs <= 0) return
    throw new HttpError(429, 'ERR_TOO_MANY_LOGINS', `${FAILURES_MAX} logins have failed; try again in a minute`, {
      headers: { 'retry-after': String(Math.ceil(leftMs / 1_000)) },
    })
  }

  failed(peer: string): void {
    const nowMs = this.#clock.monotonicMs()
    for (const [one, { sinceMs }] of this.#failures) {
      // In the order of their first failure: the oldest goes when there are too many.
      if (sinceMs + WINDOW_MS <= nowMs || this.#failures.size >= PEERS_MAX) this.#failures.delete(one)
    }
    const known = this.#failures.get(peer)
    if (known === undefined) this.#failures.set(peer, { count: 1, sinceMs: nowMs })
    else known.count += 1
  }
}
