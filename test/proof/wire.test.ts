import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createConnection, createServer, type Socket } from 'node:net'
import { type TestContext, test } from 'node:test'
import { systemClock } from '../../src/time/clock.ts'
import { TcpWire } from './wire.ts'

interface Line {
  readonly wire: TcpWire
  /** What has reached the server. */
  readonly served: () => string
  connect(): Promise<Talk>
}

interface Talk {
  readonly socket: Socket
  readonly heard: () => string
  readonly closed: Promise<unknown>
}

/** A server that answers each chunk with the same in capital letters. */
async function line(t: TestContext): Promise<Line> {
  let served = ''
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket
      .on('error', () => {})
      .on('data', (bytes) => {
        served += bytes.toString()
        socket.write(bytes.toString().toUpperCase())
      })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const wire = new TcpWire()
  const address = server.address()
  const far = typeof address === 'object' && address !== null ? address.port : 0
  const near = await wire.front({ host: '127.0.0.1', port: far })
  t.after(() => {
    wire.close()
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return {
    wire,
    served: () => served,
    async connect() {
      const socket = createConnection(near)
      let heard = ''
      socket
        .on('error', () => {})
        .on('data', (bytes) => {
          heard += bytes.toString()
        })
      const closed = new Promise((resolve) => socket.on('close', resolve))
      await Promise.race([new Promise((resolve) => socket.on('connect', resolve)), closed])
      t.after(() => socket.destroy())
      return { socket, heard: () => heard, closed }
    },
  }
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await systemClock.sleep(5)
}

test('a wire passes both ways, and a cut one resets every connection and each new one until it is mended', async (t) => {
  const { wire, connect } = await line(t)
  const first = await connect()
  first.socket.write('a')
  await until(() => first.heard() === 'A')
  wire.cut()
  await first.closed
  const refused = await connect()
  await refused.closed
  wire.mend()
  const second = await connect()
  second.socket.write('b')
  await until(() => second.heard() === 'B')
})

test('a wire that is silent towards the client lets requests through, and a mended one resets connections that were silent', async (t) => {
  const { wire, served, connect } = await line(t)
  const talk = await connect()
  talk.socket.write('a')
  await until(() => talk.heard() === 'A')
  wire.silence('to-client')
  talk.socket.write('b')
  await until(() => served() === 'ab')
  wire.mend()
  await talk.closed
  assert.equal(talk.heard(), 'A')
})

test('a wire that is silent towards the server lets nothing through, also of new connections', async (t) => {
  const { wire, served, connect } = await line(t)
  const before = await connect()
  before.socket.write('a')
  await until(() => before.heard() === 'A')
  wire.silence('to-server')
  const during = await connect()
  before.socket.write('b')
  during.socket.write('c')
  await until(() => wire.silent === 2)
  wire.mend()
  await Promise.all([before.closed, during.closed])
  assert.equal(served(), 'a')
})

test('a slow wire passes each chunk late and all in their order, and at once when it is mended', async (t) => {
  const { wire, connect } = await line(t)
  const talk = await connect()
  wire.slow('to-client', 150)
  const startedMs = systemClock.monotonicMs()
  talk.socket.write('a')
  await until(() => talk.heard() === 'A')
  assert.ok(systemClock.monotonicMs() - startedMs >= 149)
  talk.socket.write('b')
  wire.mend()
  talk.socket.write('c')
  await until(() => talk.heard() === 'ABC')
})

test('an answer is torn and its connection reset after so many bytes, though the server has seen the request', async (t) => {
  const { wire, served, connect } = await line(t)
  const talk = await connect()
  wire.cutAfter(5)
  talk.socket.write('abc')
  await until(() => talk.heard() === 'ABC')
  talk.socket.write('defg')
  await talk.closed
  assert.equal(served(), 'abcdefg')
  assert.ok('ABCDE'.startsWith(talk.heard()))
})
