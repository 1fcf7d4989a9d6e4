/** A wire to a server from which a test lets an answer get lost after the request was carried out. */
import { once } from 'node:events'
import { createConnection, createServer, type Socket } from 'node:net'

export interface LossyWire {
  /** The server's URL with the wire's port. */
  readonly url: string
  /** The next request with this text in it passes, and its connection is reset when the answer comes. */
  loseNextAnswer(requestText: string): void
  close(): void
}

export async function lossyWire(serverUrl: string): Promise<LossyWire> {
  const target = new URL(serverUrl)
  const sockets = new Set<Socket>()
  let losesNext: string | null = null
  const server = createServer((client) => {
    const upstream = createConnection(Number(target.port), target.hostname)
    let losesAnswer = false
    const end = (): void => {
      client.destroy()
      upstream.destroy()
    }
    for (const socket of [client, upstream]) {
      sockets.add(socket)
      socket.on('error', end).on('close', () => {
        sockets.delete(socket)
        end()
      })
    }
    client.on('data', (bytes) => {
      if (losesNext !== null && bytes.includes(losesNext)) {
        losesAnswer = true
        losesNext = null
      }
      upstream.write(bytes)
    })
    upstream.on('data', (bytes) => {
      if (losesAnswer) client.resetAndDestroy()
      else client.write(bytes)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const url = new URL(serverUrl)
  url.hostname = '127.0.0.1'
  url.port = String(typeof address === 'object' ? address?.port : '')
  return {
    url: url.href,
    loseNextAnswer: (requestText) => {
      losesNext = requestText
    },
    close: () => {
      for (const socket of sockets) socket.destroy()
      server.close()
    },
  }
}
