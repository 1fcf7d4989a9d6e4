/** From the table of routes to answers: each request passes the same steps in the same order. */
import type { Context, Hono } from 'hono'
import type { z } from 'zod'
import { UnsupportedError } from '../errors.ts'
import { type Caller, demandRole } from './auth.ts'
import { readJson } from './body.ts'
import { ROUTES, type RouteId, type Routes } from './contract/index.ts'
import type { Answer, Facet, Input, RouteSpec } from './contract/route.ts'
import { FACETS, type FacetOf } from './facets.ts'
import type { Shown } from './handlers/shown.ts'
import type { Parts } from './parts.ts'
import { type Issue, Refused } from './problems.ts'

/** Who calls, and whether they still listen. */
export interface Call {
  readonly caller: Caller
  readonly signal: AbortSignal
}

type Handler<Id extends RouteId> = (
  input: Input<Routes[Id]>,
  call: Call,
) => Promise<Shown<Answer<Routes[Id]>>> | Shown<Answer<Routes[Id]>>

export type Handlers<Id extends RouteId = RouteId> = { readonly [Name in Id]: Handler<Name> }

interface Bound {
  readonly spec: RouteSpec
  handle(checked: Readonly<Record<string, unknown>>, call: Call): unknown
}

export interface Gate {
  readonly parts: Parts
  /** Throws for whoever may not come in. */
  admit(context: Context): Caller
}

export function addRoutes(app: Hono, handlers: Handlers, gate: Gate): void {
  for (const id of routeIds()) {
    const { spec, handle } = bind(id, handlers)
    app.on(spec.method.toUpperCase(), honoPath(spec.path), async (context) => {
      const caller = gate.admit(context)
      demandRole(caller, spec.role)
      demandFacet(gate.parts, spec.needs)
      const input = await checkedInput(context, spec)
      const answer = await handle(input, { caller, signal: context.req.raw.signal })
      return Response.json(onlyShape(id, spec, answer), { status: spec.status ?? 200, headers: NOT_STORED })
    })
  }
}

/** Answers hold payloads and errors: no browser or proxy keeps them. */
const NOT_STORED = { 'cache-control': 'no-store' }

export function routeIds(): readonly RouteId[] {
  // The keys of an object literal whose type is exactly this table.
  return Object.keys(ROUTES) as RouteId[]
}

function bind<Id extends RouteId>(id: Id, handlers: Handlers): Bound {
  const handle: Handler<Id> = handlers[id]
  // What comes in has passed the schemas of this very route, so it is its input.
  return { spec: ROUTES[id], handle: (checked, call) => handle(checked as Input<Routes[Id]>, call) }
}

export function honoPath(path: string): string {
  return path.replace(/\{(\w+)\}/g, ':$1')
}

function demandFacet(parts: Parts, needed: Facet | undefined): void {
  if (needed === undefined) return
  const { isThere, limit }: FacetOf = FACETS[needed]
  if (!isThere(parts)) throw new UnsupportedError({ engine: parts.mill.engine.name, limit })
}

async function checkedInput({ req }: Context, spec: RouteSpec): Promise<Readonly<Record<string, unknown>>> {
  const { params, query, body } = spec
  return {
    ...(params !== undefined && { params: checked('params', params, req.param()) }),
    ...(query !== undefined && { query: checked('query', query, queryOf(req.url)) }),
    ...(body !== undefined && { body: checked('body', body, await readJson(req.raw)) }),
  }
}

/** A name that stands twice would mean one thing here and another to whoever looked at it before. */
function queryOf(url: string): Readonly<Record<string, string>> {
  const entries = [...new URL(url).searchParams]
  const names = new Set(entries.map(([name]) => name))
  if (names.size < entries.length) throw invalid([{ path: 'query', message: 'a name is given twice' }])
  return Object.fromEntries(entries)
}

function checked(part: 'params' | 'query' | 'body', shape: z.ZodType, value: unknown): unknown {
  const result = shape.safeParse(value)
  if (!result.success) {
    throw invalid(result.error.issues.map(({ path, message }) => ({ path: [part, ...path].join('.'), message })))
  }
  const bad = unstorable(result.data)
  if (bad !== null) throw invalid([{ path: [part, bad].join('.'), message: 'a text has signs that cannot be stored' }])
  return result.data
}

/** No store keeps a NUL or half a sign as it is. A payload is stored as JSON, which writes both out. */
function unstorable(data: unknown): string | null {
  for (const [name, value] of Object.entries(Object(data))) {
    if (name === 'payload') continue
    if (typeof value === 'string' && (value.includes('\0') || !value.isWellFormed())) return name
    if (typeof value === 'object' && value !== null && unstorable(value) !== null) return name
  }
  return null
}

const ISSUES_MAX = 20

function invalid(issues: readonly Issue[]): Refused {
  const shown = issues.slice(0, ISSUES_MAX)
  const [first] = shown
  const text = first === undefined ? '' : `: ${first.path}: ${first.message}`
  return new Refused(400, 'ERR_REQUEST_INVALID', `the request is not what this route takes${text}`, { issues: shown })
}

/** Only what the contract names leaves the house, whatever a handler has put beside it. */
function onlyShape(id: RouteId, { answer: shape }: RouteSpec, answer: unknown): unknown {
  const result = shape.safeParse(answer)
  if (result.success) return result.data
  const places = result.error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`)
  throw new Error(`the answer of ${id} is not what its contract says: ${places.slice(0, ISSUES_MAX).join('; ')}`)
}

/** Methods that are there for a path, in capitals; none for a path that is unknown. */
export function methodsOf(path: string): readonly string[] {
  const methods = Object.values<RouteSpec>(ROUTES)
    .filter((spec) => patternOf(spec.path).test(path))
    .map(({ method }) => method.toUpperCase())
  return methods.includes('GET') ? [...methods, 'HEAD'] : methods
}

const patterns = new Map<string, RegExp>()

function patternOf(path: string): RegExp {
  const known = patterns.get(path) ?? new RegExp(`^${path.replace(/\{\w+\}/g, '[^/]+')}$`)
  patterns.set(path, known)
  return known
}
