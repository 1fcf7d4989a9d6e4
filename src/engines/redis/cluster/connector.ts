import { createConnection, isIP, type Socket } from 'node:net'
import { connect as connectTls, type ConnectionOptions as TlsConnectionOptions } from 'node:tls'
import type { AbstractConnector } from 'ioredis'
import type { HostPort } from '../hosts.ts'

interface SocketOptions {
  readonly disconnectTimeout?: number
  readonly tls?: TlsConnectionOptions
}

/** What opens sockets for ioredis: to the server that `resolve` names at that moment. */
export function connectorTo(
  Connector: typeof AbstractConnector,
  resolve: () => Promise<HostPort>,
): new (
  options: SocketOptions,
) => AbstractConnector {
  return class extends Connector {
    readonly #tls: TlsConnectionOptions | undefined

    constructor({ disconnectTimeout = 0, tls }: SocketOptions) {
      super(disconnectTimeout)
      this.#tls = tls
    }

    async connect(): Promise<Socket> {
      this.connecting = true
      const address = await resolve()
      if (!this.connecting) throw new Error('Connection is closed.')
      const stream = this.#tls === undefined ? createConnection(address) : connectTls(tlsFor(this.#tls, address))
      stream.once('error', (error) => {
        this.firstError = error
      })
      this.stream = stream
      return stream
    }
  }
}

/** The name that the certificate must have is the one given for all nodes, or that of this node. */
function tlsFor(tls: TlsConnectionOptions, { host, port }: HostPort): TlsConnectionOptions {
  const servername = tls.servername ?? (isIP(host) === 0 ? host : undefined)
  return { ...tls, host, port, ...(servername !== undefined && { servername }) }
}
