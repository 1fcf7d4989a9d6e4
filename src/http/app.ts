import { ServerResponse } from 'node:http'
import { type Context, Hono } from 'hono'
import { getPath } from 'hono/utils/url'
import { packageVersion } from '../engine/package-info.ts'
import { type Authenticate, demandRole, type Identification } from './auth.ts'
import type { AdminContext } from './context.ts'
import { LOGIN_PATH, LOGOUT_PATH, STREAM_PATH } from './contract/index.ts'
import { checkHost, checkOrigin, checkPeer, SECURITY_HEADERS } from './guards.ts'
import { deadLetterHandlers } from './handlers/dead-letters.ts'
import { jobHandlers } from './handlers/jobs.ts'
import { operatingHandlers } from './handlers/operating.ts'
import { scheduleHandlers } from './handlers/schedules.ts'
import { typeHandlers } from './handlers/types.ts'
import { addLogin } from './login.ts'
import { openApiDocument } from './openapi.ts'
import { hasDotSegment, type Page, WITHOUT_PAGE } from './page.ts'
import type { Probes } from './probes.ts'
import { HttpError, problemResponse, toProblem } from './problems.ts'
import { addRoutes, bound, methodsOf, type RouteTable } from './routing.ts'
import { runbookPage } from './runbook-page.ts'
import type { Streams } from './streams.ts'

export interface AppOptions {
  readonly admin: AdminContext
  readonly streams: Streams
  readonly probes: Probes
  readonly identification: Identification
  readonly authenticate: Authenticate
  readonly page: Page | null
  /** Without a trailing slash; empty at the root. */
  readonly basePath: string
  readonly hosts: ReadonlySet<string>
  readonly publicHealth: boolean
  /** Beyond those of this API. */
  readonly routes: RouteTable
  peer(request: Request, env: unknown): string | null
}

export function buildApp(options: AppOptions): Hono {
  const { admin, basePath } = options
  const app = new Hono({ getPath: (request) => withoutBase(getPath(request), basePath) })
  app.onError((error) => problemResponse(toProblem(error, admin.log)))
  app.use('*', async (context, next) => {
    guard(options, context)
    await next()
    keepLogin(options, context)
  })
  addLogin(app, { ...options.identification, clock: admin.clock, peer: options.peer })
  addProbes(app, options)
  const handlers = {
    ...operatingHandlers(admin),
    ...typeHandlers(admin),
    ...scheduleHandlers(admin),
    ...jobHandlers(admin),
    ...deadLetterHandlers(admin),
  }
  const table = { ...bound(handlers), ...options.routes }
  addRoutes(app, table, { admin, admit: ({ req }) => options.authenticate(req.raw) })
  addStream(app, options)
  addDocument(app, options)
  addRunbook(app)
  addPage(app, options, table)
  return app
}

function withoutBase(path: string, basePath: string): string {
  if (basePath === '' || !(path === basePath || path.startsWith(`${basePath}/`))) return path
  return path.slice(basePath.length) || '/'
}

/** Runs before everything. With tokens it does not matter who reaches the port, and the page itself has no secrets. */
function guard({ admin, probes, publicHealth, hosts, peer }: AppOptions, { req, env }: Context): void {
  const isOpen = publicHealth && Object.hasOwn(probes, req.path)
  if (!admin.hasTokens && !isOpen) {
    checkPeer(peer(req.raw, env), req.raw.headers)
    checkHost(req.raw, hosts)
  }
  checkOrigin(req.raw, req.path)
}

/** A login that is used goes on, unless the request itself logs in or out. */
function keepLogin({ identification: { cookie, sessions } }: AppOptions, { req, res }: Context): void {
  const renewed = res.headers.has('set-cookie') ? null : cookie.forRenewal(req.raw, sessions)
  if (renewed !== null) res.headers.append('set-cookie', renewed)
}

function addProbes(app: Hono, { probes, authenticate, publicHealth }: AppOptions): void {
  for (const [path, probe] of Object.entries(probes)) {
    app.get(path, ({ req }) => {
      if (!publicHealth) demandRole(authenticate(req.raw), 'viewer')
      return probe()
    })
  }
}

function addStream(app: Hono, { streams, authenticate }: AppOptions): void {
  app.get(STREAM_PATH, ({ req, env }) => {
    demandRole(authenticate(req.raw), 'viewer')
    // HEAD requests come here too, and would never close a stream.
    if (req.raw.method === 'HEAD') return new Response(null, { headers: { 'content-type': 'text/event-stream' } })
    return streams.open(hangUpOf(env), () => isLetIn(authenticate, req.raw))
  })
}

function isLetIn(authenticate: Authenticate, request: Request): boolean {
  try {
    authenticate(request)
    return true
  } catch {
    return false
  }
}

function addDocument(app: Hono, { authenticate, basePath, routes }: AppOptions): void {
  const server = basePath === '' ? '/' : basePath
  app.get('/openapi.json', ({ req }) => {
    demandRole(authenticate(req.raw), 'viewer')
    const document = openApiDocument({ version: packageVersion(), server, routes })
    return Response.json(document, { headers: { 'cache-control': 'no-cache' } })
  })
}

/** The alerts of the dashboard link to it. It is a page of the package and has no secrets, so it needs no token. */
function addRunbook(app: Hono): void {
  app.get('/runbook', async () => {
    const page = await runbookPage()
    if (page === null)
      throw new HttpError(
        404,
        'ERR_ROUTE_UNKNOWN',
        'the runbook is not installed here; see docs/runbook.md of the package',
      )
    return page
  })
}

/** Hono's Node server passes the response, which can be ended at once. */
function hangUpOf(env: unknown): (() => void) | null {
  const outgoing: unknown = Reflect.get(Object(env), 'outgoing')
  return outgoing instanceof ServerResponse ? () => void outgoing.destroy() : null
}

function addPage(app: Hono, { page, probes }: AppOptions, table: RouteTable): void {
  app.all('*', async ({ req, env }) => {
    const { path, method } = req
    const methods = methodsFor(path, probes, table)
    if (method === 'OPTIONS' && methods.length > 0) {
      return new Response(null, { status: 204, headers: { allow: [...methods, 'OPTIONS'].join(', ') } })
    }
    if (methods.length > 0) {
      const allow = [...methods, 'OPTIONS'].join(', ')
      throw new HttpError(405, 'ERR_METHOD_REFUSED', `this path does not take ${method}; use ${methods.join(' or ')}`, {
        headers: { allow },
      })
    }
    const isRead = method === 'GET' || method === 'HEAD'
    const isPage = isRead && !/^\/(?:api|internal)(?:\/|$)/.test(path) && !hasDotSegment(sentPath(env) ?? path)
    const answer = isPage ? await pageAnswer(page, path, req.raw.headers) : null
    if (answer !== null) return answer
    throw new HttpError(404, 'ERR_ROUTE_UNKNOWN', `there is nothing at '${path.slice(0, 200)}'; see /openapi.json`)
  })
}

/** As the client sent it: `req.path` has lost segments such as `..`. Null on a server that is not Node's. */
function sentPath(env: unknown): string | null {
  const url: unknown = Reflect.get(Object(Reflect.get(Object(env), 'incoming')), 'url')
  return typeof url === 'string' ? (url.split(/[?#]/, 1)[0] ?? null) : null
}

function methodsFor(path: string, probes: Probes, table: RouteTable): readonly string[] {
  if (path === LOGIN_PATH || path === LOGOUT_PATH) return ['POST']
  const isPlain = Object.hasOwn(probes, path) || [STREAM_PATH, '/openapi.json'].includes(path)
  return isPlain ? ['GET', 'HEAD'] : methodsOf(path, table)
}

async function pageAnswer(page: Page | null, path: string, headers: Headers): Promise<Response | null> {
  if (page !== null) return page.answer(path, headers)
  return path === '/' ? new Response(WITHOUT_PAGE, { headers: { 'content-type': 'text/plain; charset=utf-8' } }) : null
}

/** On every response, including unexpected ones. */
export function withSecurityHeaders(response: Response): Response {
  for (const [name, value] of Object.entries(SECURITY_HEADERS)) response.headers.set(name, value)
  return response
}
