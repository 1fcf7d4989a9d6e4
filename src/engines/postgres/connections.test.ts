import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { type TestContext, test } from 'node:test'
import pg from 'pg'
import { connectionsOf } from './connections.ts'
import type { PgPool } from './driver.ts'
import { parseUrl } from './options.ts'

/** A message of Postgres' protocol. */
function message(type: string, body: Buffer): Buffer {
  const head = Buffer.alloc(5)
  head.write(type)
  head.writeInt32BE(body.length + 4, 1)
  return Buffer.concat([head, body])
}

const LOGGED_IN = message('R', Buffer.alloc(4))
const READY = message('Z', Buffer.from('I'))
const FIELDS = ['SFATAL', 'VFATAL', 'C57P01', 'Mterminating connection due to administrator command']
const TERMINATED = message('E', Buffer.from(`${FIELDS.join('\0')}\0\0`))

/** Lets in, and ends the connection in the same packet, as one that is restarted just then. */
async function restartingServer(t: TestContext): Promise<string> {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket.on('error', () => {}))
    socket.once('data', () => socket.end(Buffer.concat([LOGGED_IN, READY, TERMINATED])))
  }).listen(0, '127.0.0.1')
  t.after(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  await once(server, 'listening')
  return `postgres://ann@127.0.0.1:${Object(server.address()).port}/jobs`
}

test('a server that ends a connection as soon as it is open does not end the process', async (t) => {
  const url = await restartingServer(t)
  const { source, listen } = await connectionsOf({ address: parseUrl(url) })
  const client = await source.acquire()
  await assert.rejects(client.query({ text: 'SELECT 1', values: [] }))
  client.release(true)
  const listening = await listen()
  await listening.close()
  await source.close()
})

test('nor does it in a pool of the user', async (t) => {
  const pool = new pg.Pool({ connectionString: await restartingServer(t) })
  const { source } = await connectionsOf({ pool: pool as unknown as PgPool })
  const client = await source.acquire()
  await assert.rejects(client.query({ text: 'SELECT 1', values: [] }))
  client.release(true)
  await pool.end()
})
