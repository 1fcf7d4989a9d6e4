import type { Context, Hono } from 'hono'
import type { z } from 'zod'
import { EngineError, UnsupportedError } from '../errors.ts'
import { PAYLOAD_BYTES_MAX_DEFAULT } from '../job/options.ts'
import { findWithin } from '../observe/observed-mill.ts'
import { waitAtMost } from '../time/wait.ts'
import { type Caller, demandRole } from './auth.ts'
import type { AdminContext } from './context.ts'
import { FACETS, type FacetOf } from './context.ts'
import { ROUTES, type RouteId, type Routes } from './contract/index.ts'
import type { Answer, DeepReadonly, Facet, Input, RouteSpec } from './contract/route.ts'
import { HttpError, type Issue } from './problems.ts'

/** Answers requests by the table of routes: each passes the same steps in the same order. */

export interface Call {
  readonly caller: Caller
  /** Aborts when the caller hangs up. */
  readonly signal: AbortSignal
  /** A JSON value without the fields whose names mark them as secret. */
  redact(value: unknown): unknown
}

type Handler<Id extends RouteId> = (
  input: Input<Routes[Id]>,
  call: Call,
) => Promise<DeepReadonly<Answer<Routes[Id]>>> | DeepReadonly<Answer<Routes[Id]>>

export type Handlers<Id extends RouteId = RouteId> = { readonly [Name in Id]: Handler<Name> }

/** A route with its handler. `createAdmin` takes more of them under `routes`. */
export interface Route {
  readonly spec: RouteSpec
  handle(checked: Readonly<Record<string, unknown>>, call: Call): unknown
}

/** By id. */
export type RouteTable = Readonly<Record<string, Route>>

export function route<const Spec extends RouteSpec>(
  spec: Spec,
  handle: (input: Input<Spec>, call: Call) => Promise<DeepReadonly<Answer<Spec>>> | DeepReadonly<Answer<Spec>>,
): Route {
  // The input has passed the schemas of this route.
  return { spec, handle: (checked, call) => handle(checked as Input<Spec>, call) }
}

export interface Gate {
  readonly admin: AdminContext
  /** Throws for callers that are not admitted. */
  admit(context: Context): Caller
}

export function addRoutes(app: Hono, table: RouteTable, gate: Gate): void {
  const redact = (value: unknown): unknown => gate.admin.redaction.named(value)
  for (const [id, { spec, handle }] of Object.entries(table)) {
    app.on(spec.method.toUpperCase(), honoPath(spec.path), async (context) => {
      const caller = gate.admit(context)
      demandRole(caller, spec.role)
      demandFacet(gate.admin, spec.needs)
      const input = await checkedInput(context, spec)
      const handling = (async () => handle(input, { caller, signal: context.req.raw.signal, redact }))()
      const answer = await unlessAway(gate.admin, spec, handling)
      return Response.json(onlyShape(id, spec, answer), { status: spec.status ?? 200, headers: NOT_STORED })
    })
  }
}

/** How long an answer is waited for before the engine is asked whether it is there, which takes a second at most. */
const PATIENCE_MS = 800

/**
 * The answer, or 503 within two seconds when the engine is away: its own calls may wait for it much longer. What takes long
 * in an engine that answers a ping is waited for.
 */
async function unlessAway<Answered>(
  { mill, clock }: AdminContext,
  { method }: RouteSpec,
  answer: Promise<Answered>,
): Promise<Answered> {
  while (!(await waitAtMost(clock, PATIENCE_MS, answer))) {
    const ping = findWithin(clock, 'a ping of the engine', () => mill.engine.ping())
    const found = await Promise.race([ping, answer.then(ANSWERED, ANSWERED)])
    if (found.ok) continue
    const advice = method === 'get' ? 'try again' : 'what was asked for may still be done, so look before you repeat it'
    throw new EngineError('ERR_STORAGE_BUSY', `the engine does not answer: ${found.error}; ${advice}`)
  }
  return answer
}

const ANSWERED = () => ({ ok: true }) as const

/** Responses have payloads and errors, which no browser or proxy may keep. */
const NOT_STORED = { 'cache-control': 'no-store' }

export function routeIds(): readonly RouteId[] {
  // The keys of exactly this table.
  return Object.keys(ROUTES) as RouteId[]
}

/** The routes of this API with their handlers. */
export function bound(handlers: Handlers): RouteTable {
  return Object.fromEntries(routeIds().map((id) => [id, bind(id, handlers)]))
}

function bind<Id extends RouteId>(id: Id, handlers: Handlers): Route {
  const handle: Handler<Id> = handlers[id]
  return route(ROUTES[id], handle)
}

export function honoPath(path: string): string {
  return path.replace(/\{(\w+)\}/g, ':$1')
}

function demandFacet(admin: AdminContext, needed: Facet | undefined): void {
  if (needed === undefined) return
  const { isThere, limit }: FacetOf = FACETS[needed]
  if (!isThere(admin)) throw new UnsupportedError({ engine: admin.mill.engine.name, limit })
}

async function checkedInput({ req }: Context, spec: RouteSpec): Promise<Readonly<Record<string, unknown>>> {
  const { params, query, body } = spec
  return {
    ...(params !== undefined && { params: checked('params', params, req.param()) }),
    ...(query !== undefined && { query: checked('query', query, queryOf(req.url)) }),
    ...(body !== undefined && { body: checked('body', body, await readJson(req.raw)) }),
  }
}

/** A duplicate name could mean different things to a proxy and to this server. */
function queryOf(url: string): Readonly<Record<string, string>> {
  const entries = [...new URL(url).searchParams]
  const names = new Set(entries.map(([name]) => name))
  if (names.size < entries.length) throw invalid([{ path: 'query', message: 'a name occurs twice' }])
  return Object.fromEntries(entries)
}

/** The JSON of a request that is no route of the table. */
export async function checkedBody<Shape extends z.ZodType>(shape: Shape, request: Request): Promise<z.output<Shape>> {
  return checked('body', shape, await readJson(request))
}

function checked<Shape extends z.ZodType>(
  part: 'params' | 'query' | 'body',
  shape: Shape,
  value: unknown,
): z.output<Shape> {
  const result = shape.safeParse(value)
  if (!result.success) {
    throw invalid(result.error.issues.map(({ path, message }) => ({ path: [part, ...path].join('.'), message })))
  }
  const bad = unstorable(result.data)
  if (bad !== null)
    throw invalid([{ path: [part, bad].join('.'), message: 'the text has characters that cannot be stored' }])
  return result.data
}

/** No store keeps NUL or a lone surrogate. A payload is stored as JSON, which escapes both. */
function unstorable(data: unknown): string | null {
  for (const [name, value] of Object.entries(Object(data))) {
    if (name === 'payload') continue
    if (typeof value === 'string' && (value.includes('\0') || !value.isWellFormed())) return name
    if (typeof value === 'object' && value !== null && unstorable(value) !== null) return name
  }
  return null
}

const ISSUES_MAX = 20

function invalid(issues: readonly Issue[]): HttpError {
  const shown = issues.slice(0, ISSUES_MAX)
  const [first] = shown
  const text = first === undefined ? '' : `: ${first.path}: ${first.message}`
  return new HttpError(400, 'ERR_REQUEST_INVALID', `the request is invalid${text}`, { issues: shown })
}

/** Drops everything that the contract does not name. */
function onlyShape(id: string, { answer: shape }: RouteSpec, answer: unknown): unknown {
  const result = shape.safeParse(answer)
  if (result.success) return result.data
  const places = result.error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`)
  throw new Error(`the answer of ${id} does not match its contract: ${places.slice(0, ISSUES_MAX).join('; ')}`)
}

/** The methods of a path, in upper case; none for an unknown path. */
export function methodsOf(path: string, table: RouteTable): readonly string[] {
  const methods = Object.values(table)
    .filter(({ spec }) => patternOf(spec.path).test(path))
    .map(({ spec }) => spec.method.toUpperCase())
  return methods.includes('GET') ? [...methods, 'HEAD'] : methods
}

const patterns = new Map<string, RegExp>()

function patternOf(path: string): RegExp {
  const known = patterns.get(path) ?? new RegExp(`^${path.replace(/\{\w+\}/g, '[^/]+')}$`)
  patterns.set(path, known)
  return known
}

/** The largest payload, written with spaces, and its surroundings. */
export const BODY_BYTES_MAX = 2 * PAYLOAD_BYTES_MAX_DEFAULT

/** The JSON of a request; an empty body is an empty object. Reads no more than the limit, whatever its header says. */
export async function readJson(request: Request): Promise<unknown> {
  const text = await readText(request)
  if (text === '') return {}
  const type = (request.headers.get('content-type') ?? '').split(';')[0]?.trim().toLowerCase()
  if (type !== 'application/json') {
    throw new HttpError(415, 'ERR_MEDIA_TYPE', `send JSON, with 'Content-Type: application/json'`)
  }
  try {
    return JSON.parse(text)
  } catch {
    throw new HttpError(400, 'ERR_REQUEST_INVALID', 'the body is not JSON')
  }
}

async function readText({ body, headers }: Request): Promise<string> {
  if (Number(headers.get('content-length') ?? 0) > BODY_BYTES_MAX) throw tooLarge()
  if (body === null) return ''
  const chunks: Uint8Array[] = []
  let bytes = 0
  // A request's body yields bytes, whatever its type says.
  for await (const chunk of body as AsyncIterable<Uint8Array>) {
    bytes += chunk.byteLength
    if (bytes > BODY_BYTES_MAX) throw tooLarge()
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

function tooLarge(): HttpError {
  return new HttpError(
    413,
    'ERR_BODY_TOO_LARGE',
    `the body is larger than ${BODY_BYTES_MAX} bytes; store large data elsewhere and send a reference`,
  )
}
