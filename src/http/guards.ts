/** What stands before every route: who may knock at all, whatever they ask for. */
import { OptionError } from '../errors.ts'
import { Refused } from './problems.ts'

/** An address of this machine that no other one reaches, also as IPv6 writes an IPv4 one. */
export function isLoopbackAddress(address: string): boolean {
  return address === '::1' || /^(?:::ffff:)?127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/i.test(address)
}

export function isLoopbackHost(host: string): boolean {
  return host === 'localhost' || isLoopbackAddress(host.replace(/^\[|\]$/g, ''))
}

/** Without tokens everyone who reaches the port may do everything, so only this machine may reach it. */
export function checkListenHost(host: string, hasTokens: boolean): void {
  if (hasTokens || isLoopbackHost(host)) return
  throw new OptionError(
    `without tokens this listens on this machine alone, and '${host}' can be reached from others; give tokens, or leave the host out`,
  )
}

/** The address at the other end, as Hono's Node server hands it over; null where it is another server's request. */
export function nodePeer(_request: Request, env: unknown): string | null {
  const incoming: unknown = Reflect.get(Object(env), 'incoming')
  const address: unknown = Reflect.get(Object(Reflect.get(Object(incoming), 'socket')), 'remoteAddress')
  return typeof address === 'string' ? address : null
}

/** Written by proxies: the caller is somebody else than the peer. */
const FORWARDING = ['forwarded', 'x-forwarded-for', 'x-real-ip']

/** Without tokens, only for callers on this machine. A peer that nobody can tell might be anyone. */
export function checkPeer(peer: string | null, headers: Headers): void {
  const isForwarded = FORWARDING.some((name) => headers.has(name))
  if (peer !== null && isLoopbackAddress(peer) && !isForwarded) return
  throw new Refused(
    403,
    'ERR_FORBIDDEN',
    'without tokens only callers on this machine are answered; give the server tokens to answer others',
  )
}

/** The name in a Host header or a URL without its port, in lower case. */
function nameOf(host: string): string {
  return host.replace(/:\d*$/, '').toLowerCase()
}

/**
 * A page on the internet may let its own name point to 127.0.0.1 and so become, for a browser, the same origin as this
 * server. Its requests still carry that name.
 */
export function checkHost(request: Request, allowed: ReadonlySet<string>): void {
  const host = request.headers.get('host') ?? hostOfUrl(request.url)
  const name = nameOf(host)
  if (isLoopbackHost(name) || allowed.has(name)) return
  throw new Refused(
    403,
    'ERR_HOST_REFUSED',
    `this server is not known as '${name.slice(0, 100)}'; ask for localhost, or name it in 'hosts'`,
  )
}

function hostOfUrl(url: string): string {
  return URL.parse(url)?.host ?? ''
}

const SAFE_METHODS = new Set(['GET', 'HEAD', 'OPTIONS'])

/** No page of another origin can write: browsers say where a request comes from, and other programs need not. */
export function checkOrigin(request: Request): void {
  if (SAFE_METHODS.has(request.method)) return
  const site = request.headers.get('sec-fetch-site')
  const isForeign = site !== null && site !== 'same-origin' && site !== 'none'
  const origin = request.headers.get('origin')
  const host = (request.headers.get('host') ?? hostOfUrl(request.url)).toLowerCase()
  if (!isForeign && (origin === null || URL.parse(origin)?.host === host)) return
  throw new Refused(403, 'ERR_ORIGIN_REFUSED', 'a page of another origin cannot write here; open this server itself')
}

/** Scripts, styles and requests from this server alone: text of a job that became markup could run nothing. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "font-src 'self'",
  "connect-src 'self'",
  "manifest-src 'self'",
  "base-uri 'self'",
  "form-action 'self'",
  "frame-ancestors 'none'",
].join('; ')

export const SECURITY_HEADERS: Readonly<Record<string, string>> = {
  'content-security-policy': POLICY,
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
}
