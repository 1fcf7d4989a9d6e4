/**
 * One route as data: what it takes, what it answers, and who may call it. Validation, authorisation, the OpenAPI document,
 * the page's client and the fuzz tests are all made from these, so none of them can say something else than the others.
 */
import type { z } from 'zod'

/** Each may do what the one before may. */
export const ROLES = ['viewer', 'operator', 'admin'] as const
export type Role = (typeof ROLES)[number]

/** Facets of the engine without which a route answers 501. */
export type Facet = 'inspection' | 'cancellation' | 'deadLetters' | 'schedules' | 'presence' | 'pausing' | 'topics'

export interface RouteSpec {
  readonly method: 'get' | 'post' | 'delete'
  /** With `{name}` for each parameter, as OpenAPI writes it. */
  readonly path: `/${string}`
  readonly summary: string
  readonly role: Role
  readonly needs?: Facet
  readonly params?: z.ZodType
  readonly query?: z.ZodType
  readonly body?: z.ZodType
  readonly answer: z.ZodType
  /** 200 unless told. */
  readonly status?: 200 | 201 | 202
}

type Part<Spec, Name extends 'params' | 'query' | 'body'> = Spec extends {
  readonly [N in Name]: infer Shape extends z.ZodType
}
  ? { readonly [N in Name]: z.output<Shape> }
  : unknown

/** What a handler is given: the parts that the route declares, checked. */
export type Input<Spec extends RouteSpec> = Part<Spec, 'params'> & Part<Spec, 'query'> & Part<Spec, 'body'>

type Sent<Spec, Name extends 'params' | 'query' | 'body'> = Spec extends {
  readonly [N in Name]: infer Shape extends z.ZodType
}
  ? object extends z.input<Shape>
    ? { readonly [N in Name]?: z.input<Shape> }
    : { readonly [N in Name]: z.input<Shape> }
  : unknown

/** What a client sends: defaults may be left out. */
export type Request<Spec extends RouteSpec> = Sent<Spec, 'params'> & Sent<Spec, 'query'> & Sent<Spec, 'body'>

export type Answer<Spec extends RouteSpec> = z.output<Spec['answer']>

/** Keeps the literal types of a table of routes. */
export function routes<const Table extends Readonly<Record<string, RouteSpec>>>(table: Table): Table {
  return table
}
