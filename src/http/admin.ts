import type { IncomingMessage, ServerResponse } from 'node:http'
import { getRequestListener } from '@hono/node-server'
import type { Mill } from '../client/mill.ts'
import { openDesk } from '../desk/desk.ts'
import { OptionError } from '../errors.ts'
import { type OptionNames, refuseUnknown } from '../job/known-options.ts'
import { silentLog } from '../observe/log.ts'
import { attachMetrics } from '../observe/metrics/metrics.ts'
import { startSampling } from '../observe/sampling/sampler.ts'
import { systemClock } from '../time/clock.ts'
import { buildApp, withSecurityHeaders } from './app.ts'
import { authentication } from './auth.ts'
import { checkListenHost, nodePeer } from './guards.ts'
import { HOST_DEFAULT, type Listening, listenOn, PORT_DEFAULT } from './listening.ts'
import { Operations } from './operations.ts'
import { builtPage, Page } from './page.ts'
import type { AdminOptions, Parts } from './parts.ts'
import { probesOf } from './probes.ts'
import { Redaction } from './redaction.ts'
import { Streams } from './streams.ts'

/** The HTTP API and the dashboard of one mill. */
export interface Admin {
  /** A Web-standard handler, to be mounted in a server of yours. `env` is what Hono's Node server hands over. */
  fetch(request: Request, env?: unknown): Promise<Response>
  /** The same for Node's own servers, Express and Fastify. */
  node(request: IncomingMessage, response: ServerResponse): Promise<void>
  /** A server of its own: port 7420 of this machine unless told. Port 0 takes any that is free. */
  listen(where?: { readonly port?: number; readonly host?: string }): Promise<Listening>
  /** Ends streams, bulk acts and servers that were started here. The mill stays open. */
  close(): Promise<void>
}

const ADMIN_NAMES: OptionNames<AdminOptions> = {
  jobs: true,
  tokens: true,
  alerting: true,
  sampler: true,
  topics: true,
  metrics: true,
  hosts: true,
  page: true,
  basePath: true,
  publicHealth: true,
  health: true,
  healthEndpoints: true,
  peer: true,
  clock: true,
  log: true,
}

/**
 * Makes the HTTP API and the dashboard of a mill. Without tokens it answers callers on this machine alone.
 *
 * @example
 * const admin = createAdmin(mill, { jobs: [sendInvoice] })
 * const { url } = await admin.listen()
 */
export function createAdmin(mill: Mill, options: AdminOptions = {}): Admin {
  refuseUnknown(options, ADMIN_NAMES, 'createAdmin')
  const { tokens = [], clock = systemClock } = options
  const authenticate = authentication(tokens)
  const basePath = checkBasePath(options.basePath ?? '')
  const own = ownParts(mill, options)
  const parts: Parts = {
    mill,
    desk: mill.engine.deadLetters === undefined ? null : openDesk(mill, { jobs: options.jobs ?? [], clock }),
    jobs: new Map((options.jobs ?? []).map((job) => [job.type, job])),
    redaction: new Redaction(options.jobs ?? []),
    operations: new Operations({ clock, log: options.log ?? silentLog }),
    sampler: own.sampler,
    alerting: options.alerting ?? { current: () => [] },
    topics: options.topics ?? null,
    metrics: own.metrics,
    hasTokens: tokens.length > 0,
    health: options.health ?? {},
    clock,
    log: options.log ?? silentLog,
  }
  const streams = new Streams(parts)
  const folder = options.page === undefined ? builtPage() : options.page
  const app = buildApp({
    ...{ parts, streams, authenticate, basePath },
    probes: probesOf(parts, options.healthEndpoints ?? {}),
    page: folder === null ? null : new Page(folder, basePath),
    hosts: new Set((options.hosts ?? []).map((host) => host.toLowerCase())),
    publicHealth: options.publicHealth ?? false,
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
      checkListenHost(host, parts.hasTokens)
      const started = await listenOn(node, { port, host })
      // Counted before the first page asks; a store that is away is told to that one.
      parts.sampler.overview().catch(() => {})
      listening.add(started)
      return started
    },
    async close() {
      streams.close()
      await Promise.all([parts.operations.close(), ...[...listening].map((one) => one.close())])
      await own.close()
    },
  }
}

/** What was not given is made here, and ended here. */
function ownParts(mill: Mill, { sampler: given, metrics, alerting, clock = systemClock }: AdminOptions) {
  const alertsFiring = (): number => alerting?.current().filter(({ status }) => status === 'firing').length ?? 0
  const sampler = given ?? startSampling(mill, { clock, alertsFiring })
  // From now on, not from the first scrape on: what happens before would not be counted.
  const measured = metrics === undefined ? attachMetrics(mill, { clock }) : Promise.resolve(metrics)
  // Told to whoever scrapes.
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

function checkBasePath(path: string): string {
  const plain = path.replace(/\/+$/, '')
  if (plain === '' || /^(?:\/[A-Za-z0-9._~-]+)+$/.test(plain)) return plain
  throw new OptionError(`'basePath' is '${path}'; give a path such as '/admin'`)
}

/** Express may have read the body already, for `express.json()`; then it is written out again. */
function withParsedBody(request: IncomingMessage): IncomingMessage {
  const body: unknown = Reflect.get(request, 'body')
  if (!request.readableEnded || body === undefined || Reflect.has(request, 'rawBody')) return request
  const text = typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body)
  return Object.assign(request, { rawBody: Buffer.from(text) })
}
