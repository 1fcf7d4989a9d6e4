// Types of the driver stay in this file: those that are published must not need it.
import type { Client, ClientConfig } from 'pg'
import type { Servers } from './servers.ts'

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
