/** Jobs reach only the endpoints that they are configured with: a model, an embedder, IPFS, a chain. */
import { fieldOf, isMillraceError, NonRetryable, Offline, OptionError } from '../../src/errors.ts'
import type { Log } from '../../src/job/definition.ts'

export interface ApprovedFetchOptions {
  /** Such as `https://api.anthropic.com` or `http://127.0.0.1:11434/v1`. A path limits requests to what is below it. */
  readonly endpoints: readonly string[]
  readonly log?: Log
  /** Called with the host of every request that is refused, so that it can be counted. */
  readonly onRefused?: (host: string) => void
}

export interface ApprovedFetch {
  (input: string | URL | Request, init?: RequestInit): Promise<Response>
  /** Requests refused so far. */
  readonly refused: number
}

interface Endpoint {
  readonly origin: string
  /** Without the slash at its end; empty for the whole origin. */
  readonly path: string
}

/**
 * A `fetch` that reaches only these endpoints and follows no redirect. Any other request is refused with `NonRetryable`, which
 * names the host and never the path, the query or the body. Without a connection it throws `Offline`, so the job uses no
 * attempt; after an abort it throws the signal's reason.
 *
 * @example
 * const fetch = approvedFetch({ endpoints: ['http://127.0.0.1:5001'], log })
 */
export function approvedFetch({ endpoints, log, onRefused }: ApprovedFetchOptions): ApprovedFetch {
  const approved = endpoints.map(readEndpoint)
  let refused = 0
  const refuse = (host: string, why: string): NonRetryable => {
    refused += 1
    log?.warn('Request refused', { host, reason: why })
    onRefused?.(host)
    return refusal(host, why)
  }
  const send = async (input: string | URL | Request, init: RequestInit = {}): Promise<Response> => {
    const url = urlOf(input instanceof Request ? input.url : input)
    const why = url === null ? 'the address is not a URL' : reasonAgainst(url, approved)
    const host = hostOf(url)
    if (why !== null) throw refuse(host, why)
    try {
      return await fetch(input, { ...init, redirect: 'error' })
    } catch (error) {
      const signal = init.signal ?? (input instanceof Request ? input.signal : null)
      if (signal?.aborted === true) throw signal.reason
      if (isRedirect(error)) throw refuse(host, 'it answered with a redirect')
      throw connectionError(error, host)
    }
  }
  return Object.defineProperty(send, 'refused', { get: () => refused }) as typeof send & { readonly refused: number }
}

/**
 * The part of an endpoint that may be stored and shown: scheme, host and port. Paths and queries often hold an access key.
 *
 * @example
 * shownEndpoint('https://mainnet.example/v3/0a1b2c') // 'https://mainnet.example'
 */
export function shownEndpoint(url: string): string {
  return new URL(url).origin
}

function refusal(host: string, why: string): NonRetryable {
  return new NonRetryable(
    `a request to ${host} was refused: ${why}; name the endpoint in the configuration if it is meant`,
  )
}

function readEndpoint(text: string): Endpoint {
  const url = urlOf(text)
  // An endpoint can hold a key in its path or query, so the message shows only its host.
  const invalid = (why: string): OptionError =>
    new OptionError(`the endpoint ${hostOf(url)} ${why}; give a URL such as http://127.0.0.1:5001`)
  if (url === null) throw invalid('is not a URL')
  if (!isHttp(url)) throw invalid('is neither http nor https')
  if (url.username !== '' || url.password !== '') throw invalid('has credentials in its URL')
  return { origin: url.origin, path: url.pathname.replace(/\/+$/, '') }
}

function urlOf(text: string | URL): URL | null {
  return URL.parse(String(text))
}

/** Not the userinfo: in `http://allowed@other` the host is `other`. */
function hostOf(url: URL | null): string {
  return url === null || url.host === '' ? 'an unknown host' : url.host
}

function isHttp({ protocol }: URL): boolean {
  return protocol === 'http:' || protocol === 'https:'
}

/** Null when the URL is below one of them. The parser has resolved case, default ports, `..` and the forms of addresses. */
function reasonAgainst(url: URL, approved: readonly Endpoint[]): string | null {
  if (!isHttp(url)) return 'it is neither http nor https'
  if (url.username !== '' || url.password !== '') return 'its URL has credentials'
  const ofOrigin = approved.filter(({ origin }) => origin === url.origin)
  if (ofOrigin.length === 0) return 'it is not one of the configured endpoints'
  return ofOrigin.some(({ path }) => isBelow(url.pathname, path))
    ? null
    : 'its path is not below that of a configured endpoint'
}

function isBelow(pathname: string, path: string): boolean {
  if (path === '') return true
  // A server may decode these into slashes after the comparison, and `..` would then leave the path.
  if (/%2f|%5c/i.test(pathname)) return false
  return pathname === path || pathname.startsWith(`${path}/`)
}

/** The machine, the network or the server's process is away. */
const OFFLINE_CODES: ReadonlySet<unknown> = new Set([
  ...['ECONNREFUSED', 'ECONNRESET', 'ECONNABORTED', 'EPIPE', 'ETIMEDOUT', 'ENOTFOUND', 'EAI_AGAIN', 'EAI_FAIL'],
  ...['EHOSTUNREACH', 'EHOSTDOWN', 'ENETUNREACH', 'ENETDOWN', 'EADDRNOTAVAIL'],
  ...['UND_ERR_CONNECT_TIMEOUT', 'UND_ERR_SOCKET'],
])

/** `fetch` wraps the error of the connection, once; several addresses of a host make an AggregateError. */
function causesOf(error: unknown): readonly unknown[] {
  const cause = fieldOf(error, 'cause')
  const several = fieldOf(cause, 'errors')
  return [error, cause, ...(Array.isArray(several) ? several : [])]
}

function isRedirect(error: unknown): boolean {
  return causesOf(error).some((cause) => fieldOf(cause, 'message') === 'unexpected redirect')
}

/** Says nothing but the host and the code: other parts of such an error can quote the request. */
function connectionError(error: unknown, host: string): Error {
  if (isMillraceError(error)) return error
  const codes = causesOf(error).map((cause) => fieldOf(cause, 'code'))
  const offline = codes.find((code) => OFFLINE_CODES.has(code))
  if (offline !== undefined) return new Offline(`no connection to ${host} (${String(offline)})`)
  const known = codes.find((one) => typeof one === 'string') ?? fieldOf(fieldOf(error, 'cause') ?? error, 'name')
  return new Error(`the request to ${host} failed (${String(known)})`)
}
