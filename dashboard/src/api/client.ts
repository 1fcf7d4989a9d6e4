import { addressOf, LOGIN_PLACE, LOGOUT_PLACE, STREAM_PLACE } from './places.ts'
import type { Answer, Request, RouteId, Routes } from './shapes.ts'

/** An error of the server, or no response. */
export interface Problem {
  /** The HTTP status; 0 when there was no answer at all. */
  readonly status: number
  readonly code: string
  /** What to do next. */
  readonly message: string
  readonly issues: readonly { readonly path: string; readonly message: string }[]
}

export type Result<Value> =
  | { readonly ok: true; readonly value: Value }
  | { readonly ok: false; readonly problem: Problem }

interface ApiOptions {
  /** The folder of the page; the API is next to it. */
  readonly root: string
  /** Called when the server asks for a login. */
  readonly onUnauthorized: () => void
  readonly fetch?: typeof fetch
}

interface Parts {
  readonly params?: Readonly<Record<string, unknown>>
  readonly query?: Readonly<Record<string, unknown>>
  readonly body?: unknown
}

/** The client of the contract. Every failure is a result, never an exception. The browser adds the cookie of the login. */
export class Api {
  readonly #options: ApiOptions
  readonly #fetch: typeof fetch
  /** Counts logins: what was sent before one says nothing about it. */
  #logins = 0

  constructor(options: ApiOptions) {
    this.#options = options
    this.#fetch = options.fetch ?? ((...given) => fetch(...given))
  }

  async call<Id extends RouteId>(
    id: Id,
    request: Request<Routes[Id]>,
    signal?: AbortSignal,
  ): Promise<Result<Answer<Routes[Id]>>> {
    const parts: Parts = request ?? {}
    const { method, path } = addressOf(id, parts)
    const logins = this.#logins
    try {
      const response = await this.#send(path, {
        method,
        ...(method === 'POST' && { body: JSON.stringify(parts.body ?? {}) }),
        ...(signal !== undefined && { signal }),
      })
      if (!response.ok) return { ok: false, problem: await this.#problem(response, logins) }
      // The server has validated the answer by the same contract.
      return { ok: true, value: (await response.json()) as Answer<Routes[Id]> }
    } catch (error) {
      return { ok: false, problem: unreachable(error) }
    }
  }

  /** The event stream's bytes. */
  async stream(signal: AbortSignal): Promise<Result<ReadableStream<Uint8Array<ArrayBuffer>>>> {
    const logins = this.#logins
    try {
      const response = await this.#send(STREAM_PLACE, { method: 'GET', signal, cache: 'no-store' }, 'text/event-stream')
      if (!response.ok || response.body === null) return { ok: false, problem: await this.#problem(response, logins) }
      return { ok: true, value: response.body }
    } catch (error) {
      return { ok: false, problem: unreachable(error) }
    }
  }

  /** With a token, or with what a read-only link has. The cookie that it sets is for all tabs. */
  login(given: { readonly token: string } | { readonly link: string }): Promise<Problem | null> {
    return this.#change(LOGIN_PLACE, given)
  }

  logout(): Promise<Problem | null> {
    return this.#change(LOGOUT_PLACE, {})
  }

  async #change(path: string, body: object): Promise<Problem | null> {
    try {
      const response = await this.#send(path, { method: 'POST', body: JSON.stringify(body) })
      if (!response.ok) return problemFrom(response.status, await response.text())
      this.#logins += 1
      return null
    } catch (error) {
      return unreachable(error)
    }
  }

  #send(path: string, init: RequestInit & { readonly method: string }, accept = 'application/json'): Promise<Response> {
    const json = init.method === 'GET' ? {} : { 'content-type': 'application/json' }
    return this.#fetch(this.#options.root.replace(/\/$/, '') + path, { ...init, headers: { accept, ...json } })
  }

  async #problem(response: Response, logins: number): Promise<Problem> {
    if (response.status === 401 && logins === this.#logins) this.#options.onUnauthorized()
    const text = await response.text().catch(() => '')
    return problemFrom(response.status, text)
  }
}

/** A proxy may answer with anything, so the shape of an error is not certain. */
export function problemFrom(status: number, text: string): Problem {
  const said = parsed(text)
  const issues = Array.isArray(said.issues) ? said.issues : []
  return {
    status,
    code: typeof said.code === 'string' ? said.code : `HTTP_${status}`,
    message:
      typeof said.message === 'string' ? said.message : `The server answered ${status}. Its log says more; try again.`,
    issues: issues.flatMap((issue: unknown) => {
      const { path, message } = record(issue)
      return typeof message === 'string' ? [{ path: typeof path === 'string' ? path : '', message }] : []
    }),
  }
}

function parsed(text: string): Readonly<Record<string, unknown>> {
  try {
    return record(JSON.parse(text))
  } catch {
    return {}
  }
}

function record(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? { ...value } : {}
}

function unreachable(error: unknown): Problem {
  const aborted = error instanceof DOMException && error.name === 'AbortError'
  return {
    status: 0,
    code: aborted ? 'ABORTED' : 'UNREACHABLE',
    message: 'The server does not answer. Check that `millrace serve` or `millrace start` is running and reachable.',
    issues: [],
  }
}
