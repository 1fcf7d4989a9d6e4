/**
 * One route as data: its input, its answer and its role. Validation, authorization, the OpenAPI document, the dashboard's
 * client and the fuzz tests are all derived from these.
 */
import type { z } from 'zod'

/** Each role includes those before it. */
export const ROLES = ['viewer', 'operator', 'admin'] as const
export type Role = (typeof ROLES)[number]

/** Without the facet a route answers 501. */
export type Facet =
  | 'inspection'
  | 'listingByState'
  | 'cancellation'
  | 'logs'
  | 'deadLetters'
  | 'schedules'
  | 'presence'
  | 'pausing'
  | 'limiting'
  | 'emptying'
  | 'draining'
  | 'topics'

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
  /** Default: 200. */
  readonly status?: 200 | 201 | 202
}

type Part<Spec, Name extends 'params' | 'query' | 'body'> = Spec extends {
  readonly [N in Name]: infer Shape extends z.ZodType
}
  ? { readonly [N in Name]: z.output<Shape> }
  : unknown

/** What a handler gets: the validated parts that the route declares. */
export type Input<Spec extends RouteSpec> = Part<Spec, 'params'> & Part<Spec, 'query'> & Part<Spec, 'body'>

type Sent<Spec, Name extends 'params' | 'query' | 'body'> = Spec extends {
  readonly [N in Name]: infer Shape extends z.ZodType
}
  ? object extends z.input<Shape>
    ? { readonly [N in Name]?: z.input<Shape> }
    : { readonly [N in Name]: z.input<Shape> }
  : unknown

/** What a client sends: values with defaults are optional. */
export type Request<Spec extends RouteSpec> = Sent<Spec, 'params'> & Sent<Spec, 'query'> & Sent<Spec, 'body'>

export type Answer<Spec extends RouteSpec> = z.output<Spec['answer']>

/** Keeps the literal types of a table. */
export function routes<const Table extends Readonly<Record<string, RouteSpec>>>(table: Table): Table {
  return table
}

/** What a handler returns: the answer's shape, read-only. */
export type DeepReadonly<T> = T extends readonly (infer Item)[]
  ? readonly DeepReadonly<Item>[]
  : T extends object
    ? { readonly [Name in keyof T]: DeepReadonly<T[Name]> }
    : T
