import { createServer, type RequestListener, type Server } from 'node:http'
import { OptionError } from '../errors.ts'
import { isPort, PORT_MAX } from './address.ts'

export interface Listening {
  /** Such as `http://127.0.0.1:7420`. */
  readonly url: string
  /** Closes the server and every connection. A second call returns the same promise. */
  close(): Promise<void>
}

export async function listenOn(
  listener: RequestListener,
  where: { readonly port: number; readonly host: string },
): Promise<Listening> {
  if (!isPort(where.port)) {
    throw new OptionError(`'port' is ${where.port}; give a whole number from 0, for any free port, to ${PORT_MAX}`)
  }
  const server = createServer(listener)
  await started(server, where)
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : where.port
  const name = where.host.includes(':') ? `[${where.host.replace(/^\[|\]$/g, '')}]` : where.host
  let closed: Promise<void> | null = null
  return {
    url: `http://${name}:${port}`,
    close: () => {
      closed ??= ended(server)
      return closed
    },
  }
}

function started(server: Server, { port, host }: { readonly port: number; readonly host: string }): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (error) => reject(explained(error, port, host)))
    server.listen(port, host.replace(/^\[|\]$/g, ''), resolve)
  })
}

function explained(error: Error, port: number, host: string): Error {
  const code: unknown = Reflect.get(error, 'code')
  if (code === 'EADDRINUSE') {
    return new OptionError(
      `port ${port} of ${host} is in use; choose another one, or stop the program that listens there`,
      {
        cause: error,
      },
    )
  }
  if (code === 'EACCES')
    return new OptionError(`port ${port} needs more rights; choose one above 1023`, { cause: error })
  if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND') {
    return new OptionError(`'${host}' is not an address of this machine`, { cause: error })
  }
  return error
}

/** Event streams never end on their own, so connections are closed. */
function ended(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve())
    server.closeAllConnections()
  })
}
