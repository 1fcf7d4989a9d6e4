/** The wire between the processes of a round and their servers: a proxy that a nemesis can cut, silence and slow down. */
import { once } from 'node:events'
import { createConnection, createServer, type Server } from 'node:net'
import type { Direction, Wire } from './scene.ts'
import { type Condition, type Treatment, WiredConnection } from './wired-connection.ts'

export interface Address {
  readonly host: string
  readonly port: number
}

const SOUND: Condition = { silent: new Set(), lateMs: { 'to-server': 0, 'to-client': 0 }, bytesLeft: null }

/**
 * One wire may front several servers, such as the brokers of a cluster, which advertise the addresses that `front` returns.
 * A test may also decide over what clients send, by its text.
 */
export class TcpWire implements Wire {
  readonly #servers: Server[] = []
  readonly #connections = new Set<WiredConnection>()
  readonly #treat: (bytes: Buffer) => Treatment
  #condition = SOUND
  #isCut = false

  constructor(treat: (bytes: Buffer) => Treatment = () => 'pass') {
    this.#treat = treat
  }

  /**
   * Puts the wire before a server, which need not listen yet. Resolves with the address that clients connect to. The server's
   * is read for each connection: another one may take its place.
   */
  async front(to: Address): Promise<Address> {
    const server = createServer({ allowHalfOpen: true }, (client) => {
      if (this.#isCut) {
        client.on('error', () => {}).resetAndDestroy()
        return
      }
      const upstream = createConnection({ host: to.host, port: to.port, allowHalfOpen: true })
      for (const socket of [client, upstream]) socket.setNoDelay()
      const connection = new WiredConnection(client, upstream, this.#treat)
      connection.condition = this.#condition
      this.#connections.add(connection)
      connection.onClosed(() => this.#connections.delete(connection))
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    this.#servers.push(server)
    const address = server.address()
    if (typeof address !== 'object' || address === null) throw new Error('the wire has no port')
    return { host: address.address, port: address.port }
  }

  /** The URL of a server that stands alone, through the wire. */
  async through(serverUrl: string): Promise<string> {
    const url = new URL(serverUrl)
    const port = url.port === '' ? DEFAULT_PORTS[url.protocol] : Number(url.port)
    if (port === undefined) throw new Error(`'${serverUrl}' names no port`)
    const near = await this.front({ host: url.hostname, port })
    url.hostname = near.host
    url.port = String(near.port)
    return url.href
  }

  /** Those that stand and pass nothing in one direction at least. */
  get silent(): number {
    return [...this.#connections].filter(({ isSilent }) => isSilent).length
  }

  cut(): void {
    this.#isCut = true
    for (const connection of this.#connections) connection.reset()
  }

  silence(direction: Direction): void {
    this.#change({ silent: new Set([...this.#condition.silent, ...waysOf(direction)]) })
  }

  slow(direction: Direction, byMs: number): void {
    const late = waysOf(direction).map((way) => [way, byMs])
    this.#change({ lateMs: { ...this.#condition.lateMs, ...Object.fromEntries(late) } })
  }

  cutAfter(bytes: number): void {
    this.#change({ bytesLeft: bytes })
  }

  mend(): void {
    for (const connection of this.#connections) if (connection.isSilent) connection.reset()
    this.#isCut = false
    this.#change(SOUND)
  }

  /** New connections pass again. Those that stood silent stay so for ever, as behind a network that forgot them. */
  mendForNew(): void {
    this.#isCut = false
    this.#condition = SOUND
  }

  /** It does not keep this process alive. */
  unref(): void {
    for (const server of this.#servers) server.unref()
  }

  /** Ends every connection, and takes no new ones. */
  close(): void {
    for (const connection of this.#connections) connection.reset()
    for (const server of this.#servers) server.close()
  }

  #change(change: Partial<Condition>): void {
    this.#condition = { ...this.#condition, ...change }
    for (const connection of this.#connections) connection.condition = this.#condition
  }
}

const DEFAULT_PORTS: Readonly<Record<string, number>> = { 'postgres:': 5432, 'postgresql:': 5432, 'redis:': 6379 }

function waysOf(direction: Direction): readonly Exclude<Direction, 'both'>[] {
  return direction === 'both' ? ['to-server', 'to-client'] : [direction]
}
