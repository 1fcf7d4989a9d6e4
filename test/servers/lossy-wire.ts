/** A wire to a server from which a test lets an answer get lost after the request was carried out. */
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createConnection, createServer, type Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import type { Certificates } from './certificates.ts'

export interface LossyWire {
  /** The server's URL with the wire's port. */
  readonly url: string
  /** The next request with this text in it passes, and its connection is reset when the answer comes. */
  loseNextAnswer(requestText: string): void
  close(): void
}

interface SecureServer {
  /** Its URL without TLS. */
  readonly url: string
  readonly engineUrl?: string
  readonly certificates?: Certificates
}

/** With TLS the wire itself has the server's certificate: it must read the requests. Behind it there is none. */
export async function lossyWire(engineUrl: string, secure: SecureServer): Promise<LossyWire> {
  const target = new URL(secure.engineUrl === undefined ? engineUrl : secure.url)
  const sockets = new Set<Socket>()
  let losesNext: string | null = null
  const server = createServer(async (raw) => {
    raw.on('error', () => {})
    const client = secure.certificates === undefined ? raw : await greet(raw, engineUrl, secure.certificates)
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
      if (losesAnswer) raw.resetAndDestroy()
      else client.write(bytes)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const url = new URL(engineUrl)
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

/** Clients of Postgres ask for TLS in clear text first, and begin with it when the answer is an S. */
async function greet(raw: Socket, engineUrl: string, { server }: Certificates): Promise<Socket> {
  if (engineUrl.startsWith('postgres:')) {
    await once(raw, 'data')
    raw.pause()
    raw.write('S')
  }
  const [cert, key] = [readFileSync(server.cert), readFileSync(server.key)]
  return new TLSSocket(raw, { isServer: true, cert, key })
}
