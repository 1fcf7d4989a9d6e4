/** An HTTP client for URLs that strangers have entered: it reaches public addresses only, and never waits or reads for long. */
import { lookup } from 'node:dns'
import { type ClientRequest, Agent as HttpAgent, request as httpRequest, type IncomingMessage } from 'node:http'
import { Agent as HttpsAgent, request as httpsRequest, type RequestOptions } from 'node:https'
import { isIP, type LookupFunction } from 'node:net'
import { isMillraceError, OptionError } from '../../../src/errors.ts'
import { type OptionNames, refuseUnknown } from '../../../src/job/known-options.ts'
import { type Clock, systemClock } from '../../../src/time/clock.ts'
import type { HttpClient, HttpRequest, HttpResponse } from '../port.ts'
import { isPublicAddress, reasonAgainstHost } from './addresses.ts'
import { ForbiddenAddress, NetworkError, TimeoutError } from './errors.ts'

/** The addresses of a host name, IPv4 or IPv6. */
export type Resolve = (hostname: string) => Promise<readonly string[]>

export interface GuardedHttpOptions {
  /** Origins that may be plain http or have a private address, exactly as they are, such as `http://127.0.0.1:8080`. */
  readonly allow?: readonly string[]
  /** Default: the resolver of the operating system. */
  readonly resolve?: Resolve
  /** Certificates (PEM) of authorities to trust instead of those of Node. */
  readonly ca?: string | readonly string[]
  readonly clock?: Clock
}

const OPTION_NAMES: OptionNames<GuardedHttpOptions> = { allow: true, resolve: true, ca: true, clock: true }

/** More of a response is not read. */
export const RESPONSE_BYTES_MAX = 65_536
const IDLE_MS = 4_000
const FREE_SOCKETS_MAX = 64

export interface GuardedHttp extends HttpClient {
  /** Throws `ForbiddenAddress` for a URL that would be refused, as far as that is known without DNS. */
  check(url: string): URL
  /** Closes the connections that are kept open. */
  close(): void
}

/**
 * A client that sends to public addresses over https only, follows no redirects, uses no proxy and keeps no cookies. Host
 * names are resolved here, all their addresses are checked, and the connection goes to one of those that were checked.
 * The timeout covers everything from DNS to the last byte, and at most 64 KB of a response are read. Once the status is
 * there, a body that breaks off, never ends or comes too slowly is cut instead of failing. A request on a kept connection
 * that the receiver closes before it answers is sent once more, on a new connection.
 *
 * @example
 * const http = guardedHttp({ allow: ['http://127.0.0.1:8080'] })
 * const { status } = await http.post(url, { body: '{}', headers: {}, timeout: 10_000 })
 */
export function guardedHttp(options: GuardedHttpOptions = {}): GuardedHttp {
  refuseUnknown(options, OPTION_NAMES, 'guardedHttp')
  const { resolve = systemResolve, ca, clock = systemClock } = options
  const allowed = new Set((options.allow ?? []).map(originOf))
  const trusted = ca === undefined ? {} : { ca: typeof ca === 'string' ? ca : [...ca] }
  const keeping = { keepAlive: true, timeout: IDLE_MS, maxFreeSockets: FREE_SOCKETS_MAX }
  const kept = { plain: new HttpAgent(keeping), secure: new HttpsAgent({ ...keeping, ...trusted }) }
  const fresh = { plain: new HttpAgent(), secure: new HttpsAgent(trusted) }
  const check = (text: string): URL => checkedUrl(text, allowed)
  return {
    check,
    async post(text, request) {
      const url = check(text)
      const isAllowed = allowed.has(url.origin)
      const isSecure = url.protocol === 'https:'
      const start = isSecure ? httpsRequest : httpRequest
      const untilMs = clock.monotonicMs() + request.timeout
      const send = ({ plain, secure }: typeof kept): Promise<HttpResponse> => {
        const sending = start(url, {
          method: 'POST',
          agent: isSecure ? secure : plain,
          headers: { ...request.headers, 'content-length': Buffer.byteLength(request.body) },
          // Called for host names only, and only for a new connection: literals are checked above.
          lookup: checkingLookup({ resolve, host: url.host, isAllowed }),
        } satisfies RequestOptions)
        return answerOf(sending, { request, host: url.host, clock, leftMs: untilMs - clock.monotonicMs() })
      }
      try {
        return await send(kept)
      } catch (error) {
        // Receivers close idle connections at any time, also while a request is on its way. That says nothing about them.
        if (error instanceof NetworkError && error.isStale) return send(fresh)
        throw error
      }
    },
    close() {
      for (const agent of [kept.plain, kept.secure, fresh.plain, fresh.secure]) agent.destroy()
    },
  }
}

function originOf(text: string): string {
  const url = URL.parse(String(text))
  const isOrigin = url !== null && /^https?:$/.test(url.protocol) && url.href === `${url.origin}/`
  if (url !== null && isOrigin) return url.origin
  throw new OptionError(`'allow' has '${text}'; give origins without a path, such as http://127.0.0.1:8080`)
}

/** The parser has resolved decimal, octal, hexadecimal and short forms of addresses, case, and default ports. */
function checkedUrl(text: string, allowed: ReadonlySet<string>): URL {
  const url = URL.parse(String(text))
  if (url === null || url.hostname === '') {
    throw new ForbiddenAddress('an unknown host', 'it is not a URL', 'give one such as https://example.com/hooks')
  }
  // Not the userinfo: in https://allowed@other the host is `other`.
  if (url.username !== '' || url.password !== '') {
    throw new ForbiddenAddress(url.host, 'its URL has credentials', 'leave them out: the signature shows who sends it')
  }
  if (allowed.has(url.origin)) return url
  if (!/^https?:$/.test(url.protocol)) throw new ForbiddenAddress(url.host, 'it is not https', 'give an https URL')
  if (url.protocol !== 'https:') throw new ForbiddenAddress(url.host, 'it is not https')
  const why = reasonAgainstHost(url.hostname)
  if (why !== null) throw new ForbiddenAddress(url.host, why)
  return url
}

interface Checking {
  readonly resolve: Resolve
  readonly host: string
  readonly isAllowed: boolean
}

/** The connection goes to what this returns, so no second answer of a DNS server can replace what was checked. */
function checkingLookup({ resolve, host, isAllowed }: Checking): LookupFunction {
  return (hostname, { all }, done) => {
    const found = async (): Promise<readonly { address: string; family: number }[]> => {
      const addresses = await resolve(hostname)
      // One private address among public ones is enough to refuse: which one is used would be chance.
      if (!isAllowed && !addresses.every(isPublicAddress)) {
        throw new ForbiddenAddress(host, 'its name resolves to an address that is not public')
      }
      if (addresses.length === 0) throw Object.assign(new Error('no address'), { code: 'ENOTFOUND' })
      return addresses.map((address) => ({ address, family: isIP(address) }))
    }
    found().then(
      (addresses) => {
        const [first] = addresses
        if (all) done(null, [...addresses])
        else done(null, first?.address ?? '', first?.family)
      },
      (error: NodeJS.ErrnoException) => done(error, all ? [] : ''),
    )
  }
}

const systemResolve: Resolve = (hostname) =>
  new Promise((resolve, reject) => {
    lookup(hostname, { all: true }, (error, addresses) => {
      if (error === null) resolve(addresses.map(({ address }) => address))
      else reject(error)
    })
  })

interface Answering {
  readonly request: HttpRequest
  readonly host: string
  readonly clock: Clock
  /** Until the deadline of the request. */
  readonly leftMs: number
}

function answerOf(sending: ClientRequest, { request, host, clock, leftMs }: Answering): Promise<HttpResponse> {
  const { signal, timeout } = request
  return new Promise<HttpResponse>((resolve, reject) => {
    let finish: (() => void) | null = null
    let bytesBefore = 0
    const stop = clock.after(leftMs, () => {
      if (finish === null) sending.destroy(new TimeoutError(host, timeout))
      else finish()
    })
    const abort = (): void => void sending.destroy(toError(signal?.reason))
    const settle = (): void => {
      stop()
      signal?.removeEventListener('abort', abort)
    }
    const answer = (response: IncomingMessage): void => {
      finish = readInto(response, (answered) => {
        settle()
        resolve(answered)
      })
    }
    const fail = (error: Error): void => {
      settle()
      const isStale = sending.reusedSocket && sending.socket?.bytesRead === bytesBefore
      reject(isOurs(error) || signal?.aborted === true ? error : new NetworkError(host, error, isStale))
    }
    sending.on('socket', ({ bytesRead }) => {
      bytesBefore = bytesRead
    })
    sending.on('response', answer)
    // A status of 101. Without a listener the connection ends without a response and without an error.
    sending.on('upgrade', (response, socket) => {
      answer(response)
      socket.destroy()
    })
    sending.on('error', (error) => {
      if (finish === null) fail(error)
      else finish()
    })
    sending.on('close', () => {
      if (finish === null) fail(Object.assign(new Error('closed'), { code: 'ECONNRESET' }))
    })
    if (signal?.aborted === true) abort()
    signal?.addEventListener('abort', abort, { once: true })
    sending.end(request.body)
  })
}

function isOurs(error: Error): boolean {
  return isMillraceError(error) || error instanceof TimeoutError
}

function toError(reason: unknown): Error {
  return reason instanceof Error ? reason : new Error('the request was aborted')
}

/** Returns the function that cuts the body here. */
function readInto(response: IncomingMessage, resolve: (answer: HttpResponse) => void): () => void {
  const chunks: Buffer[] = []
  let bytes = 0
  let isDone = false
  const finish = (): void => {
    if (isDone) return
    isDone = true
    if (!response.complete) response.destroy()
    const data = Buffer.concat(chunks).subarray(0, RESPONSE_BYTES_MAX).toString('utf8')
    resolve({ status: response.statusCode ?? 0, data, headers: response.headers })
  }
  response.on('data', (chunk: Buffer) => {
    chunks.push(chunk)
    bytes += chunk.length
    if (bytes >= RESPONSE_BYTES_MAX) finish()
  })
  response.on('error', finish)
  response.on('close', finish)
  response.on('end', finish)
  return finish
}
