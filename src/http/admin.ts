import type { IncomingMessage, ServerResponse } from 'node:http'
import { getRequestListener } from '@hono/node-server'
import type { Mill } from '../client/mill.ts'
import { openDesk } from '../desk/desk.ts'
import { OptionError } from '../errors.ts'
import { type OptionNames, refuseUnknown } from '../job/known-options.ts'
import { Redaction } from '../job/redaction.ts'
import { silentLog } from '../observe/log.ts'
import { attachMetrics } from '../observe/metrics/metrics.ts'
import { startSampling } from '../observe/sampling/sampler.ts'
import { systemClock } from '../time/clock.ts'
import { HOST_DEFAULT, PORT_DEFAULT } from './address.ts'
import { buildApp, withSecurityHeaders } from './app.ts'
import { type AdminToken, authentication, checkUserHeader, knownTokens } from './auth.ts'
import { CauseCounts } from './cause-counts.ts'
import type { AdminContext, AdminOptions } from './context.ts'
import { SessionCookie } from './cookie.ts'
import { checkListenHost, nodePeer } from './guards.ts'
import { Operations } from './operations.ts'
import { builtPage, Page } from './page.ts'
import { probesOf } from './probes.ts'
import { type Listening, listenOn } from './server.ts'
import { Sessions } from './sessions.ts'
import { Streams } from './streams.ts'

/** The HTTP API and the dashboard of one mill. */
export interface Admin {
  /** A Web-standard handler to mount in your own server. `env` is what Hono's Node server passes. */
  fetch(request: Request, env?: unknown): Promise<Response>
  /** The same for Node's servers, Express and Fastify. */
  node(request: IncomingMessage, response: ServerResponse): Promise<void>
  /** Starts a server; default: 127.0.0.1:7420. Port 0 takes any free port. */
  listen(where?: { readonly port?: number; readonly host?: string }): Promise<Listening>
  /** Ends its streams, bulk operations and servers. The mill stays open. */
  close(): Promise<void>
}

const ADMIN_NAMES: OptionNames<AdminOptions> = {
  jobs: true,
  tokens: true,
  alerting: true,
  sampler: true,
  topics: true,
  deadLetters: true,
  routes: true,
  pages: true,
  metrics: true,
  hosts: true,
  page: true,
  basePath: true,
  trustUserHeader: true,
  publicHealth: true,
  health: true,
  healthEndpoints: true,
  peer: true,
  clock: true,
  log: true,
}

/**
 * Creates the HTTP API and the dashboard of a mill. Without tokens it answers only callers on this machine.
 *
 * @example
 * const admin = createAdmin(mill, { jobs: [sendInvoice] })
 * const { url } = await admin.listen()
 */
export function createAdmin(mill: Mill, options: AdminOptions = {}): Admin {
  refuseUnknown(options, ADMIN_NAMES, 'createAdmin')
  const { clock = systemClock } = options
  const tokens = knownTokens(checkTokens(options.tokens))
  const basePath = checkBasePath(options.basePath ?? '')
  const sessions = new Sessions(tokens, clock)
  const userHeader = checkUserHeader(options.trustUserHeader)
  const identification = { tokens, sessions, cookie: new SessionCookie(basePath), userHeader }
  const own = ownParts(mill, options)
  const admin: AdminContext = {
    mill,
    ...deskOf(mill, { ...options, sampler: own.sampler, clock }),
    jobs: new Map((options.jobs ?? []).map((job) => [job.type, job])),
    redaction: new Redaction(options.jobs ?? []),
    operations: new Operations({ clock, log: options.log ?? silentLog }),
    causes: new CauseCounts(clock),
    sampler: own.sampler,
    alerting: options.alerting ?? { current: () => [] },
    topics: options.topics ?? null,
    pages: options.pages ?? [],
    metrics: own.metrics,
    hasTokens: tokens.length > 0,
    ...{ basePath, sessions },
    health: options.health ?? {},
    clock,
    log: options.log ?? silentLog,
  }
  admin.operations.subscribe(({ status }) => {
    if (status !== 'running') admin.causes.forget()
  })
  const streams = new Streams(admin)
  const folder = options.page === undefined ? builtPage() : options.page
  const app = buildApp({
    ...{ admin, streams, identification, authenticate: authentication(identification), basePath },
    probes: probesOf(admin, options.healthEndpoints ?? {}),
    page: folder === null ? null : new Page(folder, basePath),
    hosts: new Set((options.hosts ?? []).map((host) => host.toLowerCase())),
    publicHealth: options.publicHealth ?? false,
    routes: options.routes ?? {},
    peer: options.peer ?? nodePeer,
  })
  const fetch = async (request: Request, env: unknown = {}): Promise<Response> =>
    withSecurityHeaders(await app.fetch(request, Object(env)))
  const node = getRequestListener(fetch, { overrideGlobalObjects: false })
  const listening = new Set<Listening>()
  return {
    fetch,
    node: (request, response) => node(withParsedBody(request), response),
    async listen(at: { readonly port?: number; readonly host?: string } = {}) {
      refuseUnknown(at, { port: true, host: true }, 'listen')
      const { port = PORT_DEFAULT, host = HOST_DEFAULT } = at
      checkListenHost(host, admin.hasTokens)
      const started = await listenOn(node, { port, host })
      // Counts before the first page asks. A failure shows on that page.
      admin.sampler.overview().catch(() => {})
      listening.add(started)
      return started
    },
    async close() {
      streams.close()
      await Promise.all([admin.operations.close(), ...[...listening].map((one) => one.close())])
      await own.close()
    },
  }
}

function deskOf(
  { engine, events }: Mill,
  { deadLetters, jobs = [], sampler, clock }: AdminOptions & Required<Pick<AdminOptions, 'sampler' | 'clock'>>,
): Pick<AdminContext, 'deadLetters' | 'desk'> {
  const others = deadLetters && { name: engine.name, deadLetters, counts: () => sampler.engine.counts() }
  const store = others ?? engine
  if (store.deadLetters === undefined) return { deadLetters: null, desk: null }
  return { deadLetters: store.deadLetters, desk: openDesk({ engine: store, events }, { jobs, clock }) }
}

/** Parts that the options do not have are made here, and closed here. */
function ownParts(mill: Mill, { sampler: given, metrics, alerting, health = {}, clock = systemClock }: AdminOptions) {
  const alertsFiring = (): number => alerting?.current().filter(({ status }) => status === 'firing').length ?? 0
  const sampler = given ?? startSampling(mill, { clock, alertsFiring, health })
  // Attached now, not at the first scrape, so that it counts from the start.
  const measured = metrics === undefined ? attachMetrics(mill, { clock }) : Promise.resolve(metrics)
  // The scrape reports the error.
  measured.catch(() => {})
  return {
    sampler,
    metrics: () => measured,
    close: async (): Promise<void> => {
      if (given === undefined) sampler.close()
      if (metrics === undefined) await measured.then((own) => own.detach()).catch(() => {})
    },
  }
}

/** No list and an empty one are mostly a secret that was not found. They must not open the server to every user of the machine. */
function checkTokens(tokens: AdminOptions['tokens']): readonly AdminToken[] {
  if (tokens === undefined) return []
  if (Array.isArray(tokens) && tokens.length > 0) return tokens
  const what = Array.isArray(tokens) ? 'empty' : 'not a list'
  throw new OptionError(
    `'tokens' is ${what}; give at least one { token, role, who }, or leave it out to answer every caller on this machine`,
  )
}

function checkBasePath(path: string): string {
  const plain = path.replace(/\/+$/, '')
  if (plain === '' || /^(?:\/[A-Za-z0-9._~-]+)+$/.test(plain)) return plain
  throw new OptionError(`'basePath' is '${path}'; give a path such as '/admin'`)
}

/** `express.json()` may have consumed the body; then it is serialized again. */
function withParsedBody(request: IncomingMessage): IncomingMessage {
  const body: unknown = Reflect.get(request, 'body')
  if (!request.readableEnded || body === undefined || Reflect.has(request, 'rawBody')) return request
  const text = typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body)
  return Object.assign(request, { rawBody: Buffer.from(text) })
}
