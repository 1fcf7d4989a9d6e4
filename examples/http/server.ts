/**
 * Routes that enqueue: `POST /reports` answers 202 as soon as the job is stored, and `GET /reports/<id>` returns its state. The
 * worker runs in the same process here; `millrace work` on the same file would work too. The `Idempotency-Key` header
 * becomes the job's key, so a repeated request returns the id of the first job.
 *
 *     PORT=8080 node examples/http/server.ts
 *     curl -d '{"month":"2026-01"}' -H 'idempotency-key: a1' 127.0.0.1:8080/reports
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { json } from 'node:stream/consumers'
import { defineJob, type ErrorCode, isMillraceError, open } from 'millrace'
import { z } from 'zod'

const report = defineJob({
  type: 'report',
  payload: z.object({ month: z.string().regex(/^\d{4}-\d{2}$/) }),
  run: ({ payload }) => ({ title: `Report of ${payload.month}` }),
})

const mill = await open('sqlite:./reports.db', { jobs: [report] })
const worker = await mill.work([report])

const PAYLOAD_CODES: readonly ErrorCode[] = ['ERR_PAYLOAD_INVALID', 'ERR_PAYLOAD_NOT_JSON', 'ERR_PAYLOAD_TOO_LARGE']

const server = createServer((request, response) => {
  route(request, response).catch((error: unknown) => {
    // Only mistakes of the caller are shown to the caller.
    const isTheirs = isMillraceError(error, ...PAYLOAD_CODES) || error instanceof SyntaxError
    answer(response, isTheirs ? 400 : 500, { error: isTheirs ? error.message : 'internal error' })
  })
})

async function route(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { method, url = '/' } = request
  if (method === 'POST' && url === '/reports') {
    const key = request.headers['idempotency-key']
    // By name, because the body is unknown to the compiler; the job's schema validates it.
    const { id, status } = await mill.enqueue('report', await json(request), typeof key === 'string' ? { key } : {})
    answer(response, 202, { id, status, href: `/reports/${id}` })
    return
  }
  const id = /^\/reports\/(\w+)$/.exec(url)?.[1]
  const job = id === undefined ? null : await mill.job(id)
  if (method !== 'GET' || job === null) answer(response, 404, { error: 'no such report' })
  else answer(response, 200, { id, state: job.state, attempt: job.attempt, result: job.result })
}

function answer(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(`${JSON.stringify(body)}\n`)
}

async function stop(): Promise<void> {
  server.close() // no new requests
  server.closeIdleConnections()
  await worker.stop('SIGTERM')
  await mill.close()
}

process.once('SIGTERM', () => void stop())
process.once('SIGINT', () => void stop())
server.listen(Number(process.env.PORT ?? 0), '127.0.0.1', () => {
  const address = server.address()
  if (address !== null && typeof address === 'object') console.log(`listening on http://127.0.0.1:${address.port}`)
})
