import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type RequestListener, request, type ServerResponse } from 'node:http'
import { createRequire } from 'node:module'
import type { AddressInfo, Server } from 'node:net'
import { type TestContext, test } from 'node:test'
import { createAdaptorServer } from '@hono/node-server'
import fastify from 'fastify'
import { Hono } from 'hono'
import { type Stage, stageOn } from '../../test/fixtures/admin.ts'
import { createAdmin } from './admin.ts'
import { nodePeer } from './guards.ts'

// Its types are no dependency of this package.
interface Express {
  (): Express & RequestListener
  use(...layers: readonly unknown[]): void
  json(): unknown
}
const express: Express = createRequire(import.meta.url)('express')

type Node = (request: IncomingMessage, response: ServerResponse) => unknown

async function listen(t: TestContext, server: Server): Promise<string> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  // An object for TCP, which it is.
  const { port } = server.address() as AddressInfo
  return `http://127.0.0.1:${port}`
}

/** A stage that knows its callers by their connections. */
function mounted(t: TestContext, basePath?: string): Promise<Stage> {
  return stageOn(t, 'memory:', { ...(basePath !== undefined && { basePath }), peer: nodePeer })
}

/** Looks, writes, is refused, and follows the stream, all under a prefix. */
async function tryOut(url: string, { mill }: Stage): Promise<void> {
  const json = { 'content-type': 'application/json' }
  // With a slash at the end and without one.
  for (const page of [url, `${url}/`]) assert.equal((await fetch(page)).status, 200, page)
  const session = await fetch(`${url}/api/v1/session`)
  assert.equal(session.status, 200, await session.clone().text())
  const body = JSON.stringify({ type: 'bill', payload: { n: 1 }, key: 'ä/ö' })
  const enqueued = await fetch(`${url}/api/v1/jobs`, { method: 'POST', headers: json, body })
  assert.equal(enqueued.status, 201, await enqueued.clone().text())
  const { id } = (await enqueued.json()) as { id: string }
  assert.equal((await mill.job(id))?.key, 'ä/ö')
  const found = await fetch(`${url}/api/v1/jobs?search=${encodeURIComponent('ä/Ö')}`)
  assert.equal(((await found.json()) as { items: unknown[] }).items.length, 1)
  assert.equal((await fetch(`${url}/api/v1/jobs/${encodeURIComponent('a/b%c')}`)).status, 404)
  const foreign = { ...json, origin: 'https://evil.example' }
  assert.equal((await fetch(`${url}/api/v1/jobs`, { method: 'POST', headers: foreign, body })).status, 403)
  assert.equal((await fetch(`${url}/api/v1/jobs/${id}/cancel`, { method: 'POST' })).status, 200)
  const stream = await fetch(`${url}/api/v1/events`)
  const reader = stream.body?.getReader() ?? assert.fail()
  const { value } = await reader.read()
  assert.match(Buffer.from(value ?? []).toString(), /^: welcome/)
  await reader.cancel()
}

test('in a Hono app', async (t) => {
  const stage = await stageOn(t, 'memory:', { peer: nodePeer })
  const app = new Hono()
  app.get('/own', (context) => context.text('own'))
  app.mount('/admin', stage.admin.fetch)
  // It creates a plain HTTP server by default.
  const url = await listen(t, createAdaptorServer({ fetch: app.fetch }) as Server)
  assert.equal(await (await fetch(`${url}/own`)).text(), 'own')
  await tryOut(`${url}/admin`, stage)
})

test('in an Express app, before and after its body parser', async (t) => {
  for (const isParsed of [false, true]) {
    const stage = await mounted(t, '/admin')
    const app = express()
    if (isParsed) app.use(express.json())
    app.use('/admin', (req: IncomingMessage, res: ServerResponse) => stage.admin.node(req, res))
    await tryOut(`${await listen(t, createServer(app))}/admin`, stage)
  }
})

test('in a Fastify app', async (t) => {
  const stage = await mounted(t, '/admin')
  const app = fastify()
  await app.register(async (scope) => {
    // The body is read by the admin API itself.
    scope.removeAllContentTypeParsers()
    scope.addContentTypeParser('*', (_request, _payload, done) => done(null))
    // `/admin/*` does not match `/admin`.
    for (const path of ['/admin', '/admin/*']) {
      scope.all(path, (req, reply) => {
        reply.hijack()
        void stage.admin.node(req.raw, reply.raw)
      })
    }
  })
  await app.ready()
  await tryOut(`${await listen(t, app.server)}/admin`, stage)
})

test("on a Node server of one's own, with a base path or at the root", async (t) => {
  for (const basePath of ['', '/deep/admin']) {
    const stage = await mounted(t, basePath)
    const node: Node = stage.admin.node
    await tryOut(`${await listen(t, createServer(node))}${basePath}`, stage)
  }
})

test('on a server of its own', async (t) => {
  const stage = await stageOn(t, 'memory:')
  const admin = createAdmin(stage.mill, { page: null })
  t.after(() => admin.close())
  const listening = await admin.listen({ port: 0 })
  assert.match(listening.url, /^http:\/\/127\.0\.0\.1:\d+$/)
  await tryOut(listening.url, stage)
  const port = Number(new URL(listening.url).port)
  await assert.rejects(admin.listen({ port }), { code: 'ERR_OPTION_INVALID' })
  for (const wrong of [-1, 65_536, 99_999, 1.5, Number.NaN]) {
    await assert.rejects(admin.listen({ port: wrong }), {
      code: 'ERR_OPTION_INVALID',
      message: /'port' is .* to 65535/,
    })
  }
  // A browser that was made to believe that evil.example is here.
  const asked = request({ host: '127.0.0.1', port, path: '/api/v1/jobs', headers: { host: `evil.example:${port}` } })
  asked.end()
  const [answer] = await once(asked, 'response')
  assert.equal(answer.statusCode, 403)
  answer.resume()
  await Promise.all([listening.close(), listening.close()])
  await assert.rejects(fetch(`${listening.url}/health`))
})

test('closing ends open streams and connections', async (t) => {
  const stage = await stageOn(t, 'memory:', { peer: nodePeer })
  const { url } = await stage.admin.listen({ port: 0 })
  const stream = await fetch(`${url}/api/v1/events`)
  const reader = stream.body?.getReader() ?? assert.fail()
  await reader.read()
  await stage.admin.close()
  await assert.rejects(async () => {
    for (;;) if ((await reader.read()).done) throw new Error('ended')
  })
})

test('a login has the path of the mount, in Hono, Express and on a server of Node', async (t) => {
  const tokens = [{ token: 'ann-token-0123456789', role: 'operator', who: 'ann' }] as const
  const stage = await stageOn(t, 'memory:', { basePath: '/admin', tokens, peer: nodePeer })
  const hono = new Hono()
  hono.mount('/admin', stage.admin.fetch)
  const parsed = express()
  parsed.use(express.json())
  parsed.use('/admin', (req: IncomingMessage, res: ServerResponse) => stage.admin.node(req, res))
  // It creates a plain HTTP server by default.
  const servers = [createAdaptorServer({ fetch: hono.fetch }) as Server, createServer(parsed)]
  for (const server of [...servers, createServer(stage.admin.node)]) {
    const url = await listen(t, server)
    const headers = { 'content-type': 'application/json', origin: url }
    const body = JSON.stringify({ token: tokens[0].token })
    const login = await fetch(`${url}/admin/api/v1/login`, { method: 'POST', headers, body })
    const [set = ''] = login.headers.getSetCookie()
    assert.deepEqual([login.status, /; Path=([^;]*)/.exec(set)?.[1]], [204, '/admin'])
    const sent = { ...headers, cookie: set.split(';')[0] ?? '' }
    const paused = await fetch(`${url}/admin/api/v1/queues/bill/pause`, { method: 'POST', headers: sent, body: '{}' })
    assert.equal(paused.status, 200, await paused.text())
    await fetch(`${url}/admin/api/v1/logout`, { method: 'POST', headers: sent, body: '{}' })
    assert.equal((await fetch(`${url}/admin/api/v1/session`, { headers: sent })).status, 401)
  }
})
