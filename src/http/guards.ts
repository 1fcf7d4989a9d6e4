/** Checks before every route: which callers are answered at all. */
import { OptionError } from '../errors.ts'
import { STREAM_PATH } from './contract/index.ts'
import { HttpError } from './problems.ts'

/** A loopback address, also an IPv4 one in IPv6 notation. */
export function isLoopbackAddress(address: string): boolean {
  return address === '::1' || /^(?:::ffff:)?127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/i.test(address)
}

export function isLoopbackHost(host: string): boolean {
  return host === 'localhost' || isLoopbackAddress(host.replace(/^\[|\]$/g, ''))
}

/** Without tokens every caller may do everything, so only this machine may reach the port. */
export function checkListenHost(host: string, hasTokens: boolean): void {
  if (hasTokens || isLoopbackHost(host)) return
  throw new OptionError(
    `without tokens the server listens on this machine only, and '${host}' is reachable from others; give tokens, or leave out the host`,
  )
}

/** The remote address, as Hono's Node server passes it; null for requests of another server. */
export function nodePeer(_request: Request, env: unknown): string | null {
  const incoming: unknown = Reflect.get(Object(env), 'incoming')
  const address: unknown = Reflect.get(Object(Reflect.get(Object(incoming), 'socket')), 'remoteAddress')
  return typeof address === 'string' ? address : null
}

/** Set by proxies: the caller is not the peer. */
const FORWARDING = ['forwarded', 'x-forwarded-for', 'x-real-ip']

/** For servers without tokens. An unknown peer is refused. */
export function checkPeer(peer: string | null, headers: Headers): void {
  const isForwarded = FORWARDING.some((name) => headers.has(name))
  if (peer !== null && isLoopbackAddress(peer) && !isForwarded) return
  throw new HttpError(
    403,
    'ERR_FORBIDDEN',
    'without tokens only callers on this machine are answered; start the server with tokens to answer others',
  )
}

/** The host name without its port, in lower case. */
function nameOf(host: string): string {
  return host.replace(/:\d*$/, '').toLowerCase()
}

/**
 * Against DNS rebinding: a page on the internet may point its own name to 127.0.0.1, but its requests still carry that
 * name.
 */
export function checkHost(request: Request, allowed: ReadonlySet<string>): void {
  const name = nameOf(hostOf(request))
  if (isLoopbackHost(name) || allowed.has(name)) return
  throw new HttpError(
    403,
    'ERR_HOST_REFUSED',
    `this server is not known as '${name.slice(0, 100)}'; use localhost, or add the name to 'hosts'`,
  )
}

/** With the port, if the request names one. */
export function hostOf({ url, headers }: Request): string {
  return headers.get('host') ?? URL.parse(url)?.host ?? ''
}

/**
 * Pages of other origins cannot use this server: browsers say where a request comes from. They could not read the answers
 * anyway, but could write, open event streams until none is left, or make the store count. A link to here works.
 */
export function checkOrigin(request: Request, path: string): void {
  if (!isForeign(request) || (path !== STREAM_PATH && isLink(request))) return
  throw new HttpError(
    403,
    'ERR_ORIGIN_REFUSED',
    'pages of other origins cannot use this server; open it itself, or follow a link to it',
  )
}

function isForeign(request: Request): boolean {
  const site = request.headers.get('sec-fetch-site')
  if (site !== null && site !== 'same-origin' && site !== 'none') return true
  const origin = request.headers.get('origin')
  return origin !== null && URL.parse(origin)?.host !== hostOf(request).toLowerCase()
}

/**
 * For acts with a cookie, which browsers send without being asked: the browser must say that the page is ours. All of them
 * send an Origin with a write.
 */
export function checkOwnPage(request: Request): void {
  const { method, headers } = request
  const isSaid = headers.get('sec-fetch-site') === 'same-origin' || headers.has('origin')
  if (method === 'GET' || method === 'HEAD' || (isSaid && !isForeign(request))) return
  throw new HttpError(
    403,
    'ERR_ORIGIN_REFUSED',
    `with a cookie only the dashboard's own page can act; programs send 'Authorization: Bearer'`,
  )
}

/** A user who follows a link, not a script or a frame. */
function isLink({ method, headers }: Request): boolean {
  const isRead = method === 'GET' || method === 'HEAD'
  return isRead && headers.get('sec-fetch-mode') === 'navigate' && headers.get('sec-fetch-dest') === 'document'
}

/** Scripts, styles and requests from this server only: markup in a job's text cannot run anything. */
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
