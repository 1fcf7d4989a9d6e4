import type { Client, ClientConfig } from 'pg'
import { isConnectionFault } from './faults.ts'

/**
 * The servers of a URL, of which one is the primary. New connections go to the one that last was. When it cannot be
 * reached, or has become a standby, they go to the next.
 */
export class Servers {
  readonly #connectionStrings: readonly string[]
  #at = 0

  constructor(connectionStrings: readonly string[]) {
    this.#connectionStrings = connectionStrings
  }

  get count(): number {
    return this.#connectionStrings.length
  }

  /** The connection string for the next connection. */
  get current(): string {
    return this.#connectionStrings[this.#at] ?? ''
  }

  /** Several connections may fail at the same time: only the first moves on. */
  leave(server: string): void {
    if (server === this.current) this.#at = (this.#at + 1) % this.count
  }

  /** Tries each of them once at most. Rejects as the last one did. */
  async reach<Connected>(connect: () => Promise<Connected>): Promise<Connected> {
    for (let left = this.count; ; left -= 1) {
      try {
        return await connect()
      } catch (error) {
        if (left === 1 || !isConnectionFault(error)) throw error
      }
    }
  }
}

type Callback = ((error: Error) => void) | ((error: null, client: Client) => void)

/** A client of the driver that connects to the present server, and refuses it if that is a standby. */
export function primaryClient(driver: typeof Client, servers: Servers): typeof Client {
  return class PrimaryClient extends driver {
    readonly #server = servers.current

    constructor(config?: ClientConfig) {
      super({ ...config, connectionString: servers.current })
      // A pool listens only once its client is connected.
      this.on('error', () => {})
    }

    override connect(): Promise<Client>
    override connect(callback: Callback): void
    override connect(callback?: Callback): Promise<Client> | undefined {
      const connecting = this.#connect()
      if (callback === undefined) return connecting
      connecting.then(
        () => Reflect.apply(callback, undefined, [null, this]),
        (error: unknown) => Reflect.apply(callback, undefined, [error]),
      )
      return undefined
    }

    async #connect(): Promise<Client> {
      try {
        await super.connect()
        const { rows } = await this.query<{ standby: boolean }>('SELECT pg_is_in_recovery() AS standby')
        // With the code with which it would refuse a write.
        if (rows[0]?.standby === true) throw Object.assign(new Error('the server is a standby'), { code: '25006' })
        return this
      } catch (error) {
        servers.leave(this.#server)
        void this.end().catch(() => {})
        throw error
      }
    }
  }
}
