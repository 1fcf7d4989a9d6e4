/** The API asked by chance, from its own OpenAPI document. */
import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import { type TestContext, test } from 'node:test'
import fc from 'fast-check'
import { until } from '../../test/cli/run.ts'
import { ENGINES, ORIGIN, type Stage, stageOn, storeOf } from '../../test/fixtures/admin.ts'
import { ArrayLog } from '../../test/fixtures/array-log.ts'
import { fromJsonSchema, HOSTILE, type JsonSchema, recordOf, spoilt } from '../../test/fixtures/from-json-schema.ts'
import { dlqRoutes, TopicDesk } from '../../workloads/escrow/index.ts'
import { TopicLetters } from '../engines/kafka/dead-letters/topic-letters.ts'
import { systemClock } from '../time/clock.ts'
import type { AdminOptions } from './context.ts'
import { Problem } from './contract/shapes.ts'
import { openApiDocument } from './openapi.ts'

/** Requests of each kind to each route; more with FUZZ_RUNS. */
const RUNS = Number(process.env.FUZZ_RUNS ?? 30)
const token = (role: string) => `${role}-token-0123456789`
const TOKENS = (['viewer', 'operator', 'admin'] as const).map((role) => ({ role, who: role, token: token(role) }))

interface Operation {
  readonly id: string
  readonly method: string
  readonly path: string
  readonly role: string
  readonly params: JsonSchema
  readonly query: JsonSchema
  readonly body: JsonSchema | null
}

/** From the document alone, as a stranger would. */
const OPERATIONS: readonly Operation[] = Object.entries(
  recordOf(openApiDocument({ version: '0', routes: someRoutes() }).paths),
).flatMap(([path, item]) =>
  Object.entries(recordOf(item)).map(([method, given]) => {
    const operation = recordOf(given)
    const parameters: readonly JsonSchema[] = Array.isArray(operation.parameters) ? operation.parameters : []
    const content = recordOf(recordOf(recordOf(operation.requestBody).content)['application/json'])
    return {
      id: String(operation.operationId),
      method: method.toUpperCase(),
      path,
      role: String(operation['x-millrace-role']),
      params: objectOf(parameters.filter((one) => one.in === 'path')),
      query: objectOf(parameters.filter((one) => one.in === 'query')),
      body: operation.requestBody === undefined ? null : recordOf(content.schema),
    }
  }),
)

/** Routes of a workload pass through the same checks. */
function someRoutes() {
  return dlqRoutes(new TopicDesk(new TopicLetters(new ArrayLog(systemClock), { clock: systemClock })))
}

function objectOf(parameters: readonly JsonSchema[]): JsonSchema {
  return {
    type: 'object',
    properties: Object.fromEntries(parameters.map(({ name, schema }) => [String(name), schema])),
    required: parameters.filter(({ required }) => required === true).map(({ name }) => String(name)),
  }
}

interface Sent {
  readonly path: string
  readonly init: RequestInit
}

function requests(operation: Operation, known: readonly string[], hostile: boolean): fc.Arbitrary<Sent> {
  const part = (schema: JsonSchema): fc.Arbitrary<unknown> => {
    const valid = fromJsonSchema(schema, known)
    return hostile ? fc.oneof(valid, spoilt(valid)) : valid
  }
  const body = operation.body === null ? fc.constant(undefined) : part(operation.body)
  const params = fc.tuple(fromJsonSchema(operation.params, known), hostile ? fc.option(HOSTILE) : fc.constant(null))
  return fc.tuple(params, part(operation.query), body).map(([[inPath, bad], query, sent]) => ({
    path: pathOf(operation.path, recordOf(inPath), bad) + searchOf(query),
    init: {
      method: operation.method,
      ...(sent !== undefined && { headers: { 'content-type': 'application/json' }, body: JSON.stringify(sent) ?? '' }),
    },
  }))
}

function pathOf(template: string, params: JsonSchema, bad: unknown): string {
  return template.replace(/\{(\w+)\}/g, (_all, name: string) => {
    const value = bad === null ? params[name] : typeof bad === 'string' ? bad : JSON.stringify(bad)
    // An empty part, or one of dots, would be another path.
    const text = String(value).toWellFormed()
    return encodeURIComponent(/^\.*$/.test(text) ? '-' : text.slice(0, 2_000))
  })
}

function searchOf(query: unknown): string {
  const entries = Object.entries(recordOf(query)).map(([name, value]): [string, string] => [
    name,
    typeof value === 'string' ? value.slice(0, 2_000) : (JSON.stringify(value) ?? ''),
  ])
  return entries.length === 0 ? '' : `?${new URLSearchParams(entries)}`
}

async function start(t: TestContext, url: string, options: AdminOptions = {}) {
  const topics = { lags: async () => [], limits: () => null }
  const stage = await stageOn(t, url, { topics, routes: someRoutes(), ...options })
  const { mill, bury } = stage
  await mill.schedules.upsert('nightly', { type: 'bill', cron: '0 3 * * *', payload: { n: 1 } })
  const ids = [await bury(), await bury('mail'), (await mill.enqueue('bill', { n: 1 }, { key: 'k' })).id]
  const known = [...ids, 'bill', 'mail', 'nightly']
  const seed = randomInt(2 ** 31)
  t.diagnostic(`seed ${seed}`)
  const run = (arbitrary: fc.Arbitrary<Sent>, check: (sent: Sent) => Promise<void>) =>
    fc.assert(fc.asyncProperty(arbitrary, check), { numRuns: RUNS, seed })
  return { ...stage, known, run }
}

/** Bulk acts go on after their answer; what they change is not the next request's doing. */
async function settledStore({ mill, raw }: Stage, headers: Record<string, string> = {}): Promise<unknown> {
  const list = async () => JSON.parse(await (await raw('/api/v1/operations', { headers })).text()).operations
  for (const { id, status } of await list()) {
    if (status === 'running') await raw(`/api/v1/operations/${id}`, { method: 'DELETE', headers })
  }
  await until(async () => (await list()).every(({ status }: { status: string }) => status !== 'running'), 30_000)
  return storeOf(mill)
}

for (const url of ENGINES) {
  test(`whatever is asked of ${url}, nothing fails inside, and what is refused changes nothing`, async (t) => {
    const stage = await start(t, url)
    let [accepted, refused] = [0, 0]
    for (const operation of OPERATIONS) {
      await stage.run(requests(operation, stage.known, true), async ({ path, init }) => {
        const before = operation.method === 'GET' ? null : await settledStore(stage)
        const response = await stage.raw(path, init)
        const text = await response.text()
        const shown =
          `${operation.id}: ${init.method} ${path} ${String(init.body)} answered ${response.status} ${text}`.slice(
            0,
            2_000,
          )
        assert.ok(response.status < 500, shown)
        if (response.status < 400) {
          accepted += 1
          return
        }
        refused += 1
        assert.ok(Problem.safeParse(JSON.parse(text)).success, shown)
        if (before !== null) assert.deepEqual(await storeOf(stage.mill), before, shown)
      })
    }
    assert.ok(accepted > 100 && refused > 100, `${accepted} accepted, ${refused} refused`)
    assert.deepEqual(
      stage.lines.filter(({ level }) => level === 'error'),
      [],
    )
  })
}

const INTRUDERS: readonly (readonly [string, (operation: Operation) => Record<string, string> | null])[] = [
  ['nobody', () => ({})],
  ['a wrong token', () => ({ authorization: `Bearer ${token('nobody')}` })],
  [
    'a role that is too low',
    ({ role }) =>
      role === 'viewer' ? null : { authorization: `Bearer ${token(role === 'admin' ? 'operator' : 'viewer')}` },
  ],
  ['another page', () => ({ authorization: `Bearer ${token('admin')}`, origin: 'https://evil.example' })],
  [
    'another page, as browsers say it',
    () => ({ authorization: `Bearer ${token('admin')}`, 'sec-fetch-site': 'cross-site' }),
  ],
]

test('a request that is right in everything else from a caller without the role writes nothing', async (t) => {
  const stage = await start(t, 'memory:', { tokens: TOKENS })
  const before = await storeOf(stage.mill)
  for (const operation of OPERATIONS.filter(({ method }) => method !== 'GET')) {
    await stage.run(requests(operation, stage.known, false), async ({ path, init }) => {
      for (const [who, headersFor] of INTRUDERS) {
        const headers = headersFor(operation)
        if (headers === null) continue
        const response = await stage.raw(path, { ...init, headers: { ...init.headers, ...headers } })
        assert.ok([401, 403].includes(response.status), `${operation.id} by ${who}: ${response.status}`)
      }
    })
  }
  assert.deepEqual(await storeOf(stage.mill), before)
  const asked = await stage.admin.fetch(
    new Request(`${ORIGIN}/api/v1/session`, { headers: { authorization: `Bearer ${token('viewer')}` } }),
  )
  assert.equal(asked.status, 200, 'the tokens are right')
})

test('a body that is not what the schema says is never written', async (t) => {
  const stage = await start(t, 'memory:')
  const before = await storeOf(stage.mill)
  for (const operation of OPERATIONS.filter(({ body }) => body !== null)) {
    const path = pathOf(operation.path, {}, 'bill')
    const bodies = [HOSTILE.filter((value) => !isRecord(value)), HOSTILE.map((bad) => ({ surprise: bad }))]
    const arbitrary = fc.oneof(...bodies).map((body): Sent => {
      const text = JSON.stringify(body) ?? 'undefined'
      return { path, init: { method: operation.method, headers: { 'content-type': 'application/json' }, body: text } }
    })
    await stage.run(arbitrary, async ({ init }) => {
      const response = await stage.raw(path, init)
      assert.equal(response.status, 400, `${operation.id}: ${String(init.body).slice(0, 200)}`)
    })
  }
  assert.deepEqual(await storeOf(stage.mill), before)
})

function isRecord(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
