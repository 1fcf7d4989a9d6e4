/** The OpenAPI 3.1 document, from the table of routes. */
import { z } from 'zod'
import { ROUTES } from './contract/index.ts'
import { ROLES, type RouteSpec } from './contract/route.ts'
import { Problem } from './contract/shapes.ts'

type Json = Readonly<Record<string, unknown>>

const PROBLEM = { $ref: '#/components/schemas/Problem' }

const PROBLEM_RESPONSES: Readonly<Record<string, string>> = {
  400: 'The request does not match the schema.',
  401: 'No token, or an unknown one.',
  403: 'The role is too low, or the caller is not admitted.',
  default: 'An error with a stable code and what to do next.',
}

export function openApiDocument(info: {
  readonly version: string
  readonly server?: string
  /** More routes, by id. */
  readonly routes?: Readonly<Record<string, { readonly spec: RouteSpec }>>
}): Json {
  const paths: Record<string, Record<string, Json>> = {}
  const extra = Object.entries(info.routes ?? {}).map(([id, { spec }]) => [id, spec] as const)
  for (const [id, spec] of [...Object.entries<RouteSpec>(ROUTES), ...extra]) {
    paths[spec.path] = { ...paths[spec.path], [spec.method]: operation(id, spec) }
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Millrace',
      version: info.version,
      description:
        'The admin API of Millrace. Times are milliseconds since 1970. Lists are read page by page: pass `next` of one answer as `cursor` of the next request.',
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: info.server ?? '/' }],
    // Without tokens, callers on the machine itself need none.
    security: [{ bearer: [] }, {}],
    tags: TAGS.map((name) => ({ name })),
    paths,
    components: {
      securitySchemes: { bearer: { type: 'http', scheme: 'bearer' } },
      schemas: { Problem: schemaOf(Problem, 'output') },
    },
  }
}

const TAGS = ['operating', 'jobs', 'dead letters', 'topics'] as const

function tagOf(path: string): (typeof TAGS)[number] {
  if (path.startsWith('/internal/')) return 'topics'
  if (/^\/api\/v1\/(?:dead-letters|operations|audit)\b/.test(path)) return 'dead letters'
  return /^\/api\/v1\/jobs\b/.test(path) ? 'jobs' : 'operating'
}

function operation(id: string, spec: RouteSpec): Json {
  const rights = ROLES.slice(ROLES.indexOf(spec.role)).join(', ')
  return {
    operationId: id,
    tags: [tagOf(spec.path)],
    summary: spec.summary,
    description: `For the roles ${rights}.${spec.needs === undefined ? '' : ` 501 when the engine has no ${spec.needs}.`}`,
    'x-millrace-role': spec.role,
    ...(spec.needs !== undefined && { 'x-millrace-needs': spec.needs }),
    parameters: [...parametersOf(spec.params, 'path'), ...parametersOf(spec.query, 'query')],
    ...(spec.body !== undefined && { requestBody: bodyOf(spec.body) }),
    responses: {
      [String(spec.status ?? 200)]: { description: 'Done.', content: jsonOf(schemaOf(spec.answer, 'output')) },
      ...Object.fromEntries(Object.entries(PROBLEM_RESPONSES).map(([status, text]) => [status, problem(text)])),
    },
  }
}

function problem(description: string): Json {
  return { description, content: jsonOf(PROBLEM) }
}

function jsonOf(schema: Json): Json {
  return { 'application/json': { schema } }
}

function bodyOf(body: z.ZodType): Json {
  const isOptional = body.safeParse({}).success
  return { required: !isOptional, content: jsonOf(schemaOf(body, 'input')) }
}

function parametersOf(shape: z.ZodType | undefined, place: 'path' | 'query'): readonly Json[] {
  if (shape === undefined) return []
  const { properties = {}, required = [] } = schemaOf(shape, 'input')
  const names: readonly unknown[] = Array.isArray(required) ? required : []
  return Object.entries(Object(properties)).map(([name, schema]) => ({
    name,
    in: place,
    required: place === 'path' || names.includes(name),
    schema,
  }))
}

function schemaOf(shape: z.ZodType, io: 'input' | 'output'): Json {
  const { $schema: _, ...schema } = z.toJSONSchema(shape, { io, unrepresentable: 'any', target: 'draft-2020-12' })
  return schema
}
