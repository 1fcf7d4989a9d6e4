import type { PgPool, PgPoolClient } from './driver.ts'

/**
 * Keeps the connection that was used last, for the next statement. The pool would set three timers for each statement, which
 * is noticeable in a process that has little to do.
 */
export class Spare {
  readonly #pool: Pick<PgPool, 'waitingCount'>
  readonly #connect: () => Promise<PgPoolClient>
  #free: PgPoolClient | null = null
  #isClosed = false

  /** `connect` takes one from the pool. */
  constructor(pool: Pick<PgPool, 'waitingCount'>, connect: () => Promise<PgPoolClient>) {
    this.#pool = pool
    this.#connect = connect
  }

  async acquire(): Promise<PgPoolClient> {
    const free = this.#free
    this.#free = null
    return free ?? this.#lend(await this.#connect())
  }

  /** The pool gives a connection its `release` each time it lends it. */
  #lend(client: PgPoolClient): PgPoolClient {
    const giveBack = client.release.bind(client)
    let isGone = false
    const drop = (): void => {
      isGone = true
      if (this.#free === client) client.release()
    }
    client.on('error', drop)
    client.on('end', drop)
    client.release = (destroy) => {
      const isBroken = isGone || (destroy ?? false) !== false
      if (!isBroken && !this.#isClosed && this.#pool.waitingCount === 0 && this.#free === null) {
        this.#free = client
        return
      }
      if (this.#free === client) this.#free = null
      client.removeListener('error', drop)
      client.removeListener('end', drop)
      giveBack(isBroken)
    }
    return client
  }

  close(): void {
    this.#isClosed = true
    this.#free?.release()
  }
}
