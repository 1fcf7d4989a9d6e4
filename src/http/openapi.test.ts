import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { stageOn } from '../../test/fixtures/admin.ts'
import { ROUTES } from './contract/index.ts'
import type { RouteSpec } from './contract/route.ts'
import { openApiDocument } from './openapi.ts'

type Json = Record<string, unknown>
const METHODS = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch', 'trace']

function record(value: unknown): Json {
  assert.ok(typeof value === 'object' && value !== null && !Array.isArray(value))
  return value as Json
}

const document = openApiDocument({ version: '1.2.3' })
const operations = Object.entries(record(document.paths)).flatMap(([path, item]) =>
  Object.entries(record(item)).map(([method, operation]) => ({ path, method, operation: record(operation) })),
)

test('the document lists exactly the table', () => {
  const listed = operations.map(({ path, method, operation }) => [operation.operationId, method, path])
  const table = Object.entries<RouteSpec>(ROUTES).map(([id, { method, path }]) => [id, method, path])
  assert.deepEqual(listed.toSorted(), table.toSorted())
})

test('it has the structure of OpenAPI 3.1', () => {
  assert.match(String(document.openapi), /^3\.1\.\d+$/)
  const info = record(document.info)
  assert.deepEqual([typeof info.title, info.version], ['string', '1.2.3'])
  for (const { path, method, operation } of operations) {
    const where = `${method} ${path}`
    assert.ok(path.startsWith('/') && METHODS.includes(method), where)
    const parameters = (operation.parameters as readonly unknown[]).map(record)
    const inPath = parameters.filter((one) => one.in === 'path')
    const templated = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name)
    assert.deepEqual(inPath.map(({ name }) => name).toSorted(), templated.toSorted(), where)
    assert.ok(
      inPath.every(({ required }) => required === true),
      where,
    )
    const keys = parameters.map((one) => `${one.in} ${one.name}`)
    assert.equal(new Set(keys).size, keys.length, where)
    for (const one of parameters) assert.ok(['path', 'query'].includes(String(one.in)) && record(one.schema), where)
    for (const [status, response] of Object.entries(record(operation.responses))) {
      assert.match(status, /^(?:[1-5]\d\d|default)$/)
      assert.equal(typeof record(response).description, 'string', where)
      assert.ok(record(record(record(response).content)['application/json']).schema, where)
    }
    if (operation.requestBody !== undefined) assert.notEqual(method, 'get', where)
  }
  const ids = operations.map(({ operation }) => operation.operationId)
  assert.equal(new Set(ids).size, ids.length)
})

test('every reference leads somewhere, and no schema names another dialect', () => {
  const visit = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return
    for (const [name, part] of Object.entries(value)) {
      assert.notEqual(name, '$schema')
      if (name === '$ref') {
        const target = String(part)
          .slice(2)
          .split('/')
          .reduce<unknown>((found, step) => record(found)[step], document)
        assert.ok(target, String(part))
      } else visit(part)
    }
  }
  visit(document)
  assert.ok(JSON.stringify(document).length > 10_000)
})

test('it is served, and can be read in a mounted place', async (t) => {
  const { raw } = await stageOn(t, 'memory:', { basePath: '/admin' })
  const response = await raw('/admin/openapi.json')
  assert.equal(response.status, 200)
  assert.deepEqual(JSON.parse(await response.text()).servers, [{ url: '/admin' }])
})

/** The routes as a table in Markdown. */
function routesTable(): string {
  const rows = Object.values<RouteSpec>(ROUTES).map(
    ({ method, path, role, needs, summary }) =>
      `| \`${method.toUpperCase()} ${path}\` | ${role} | ${needs ?? ''} | ${summary} |`,
  )
  return ['| Route | Role | Needs | What it does |', '| --- | --- | --- | --- |', ...rows].join('\n')
}

const page = readFileSync(join(import.meta.dirname, '../../docs/http-api.md'), 'utf8')

test('docs/http-api.md has the table of the routes', () => {
  assert.ok(page.includes(routesTable()), `write this into docs/http-api.md:\n${routesTable()}`)
})

test('docs/http-api.md has every code of a refusal, and no other', () => {
  const source = readFileSync(join(import.meta.dirname, 'problems.ts'), 'utf8')
  const codes = [...source.matchAll(/(?:\| |code: )'(ERR_\w+)'/g)].map(([, code]) => code)
  const documented = [...page.matchAll(/^\| `(ERR_\w+)` \|/gm)].map(([, code]) => code)
  assert.ok(codes.length > 10)
  assert.deepEqual(documented.toSorted(), codes.toSorted())
})
