import type { PgPoolClient } from './driver.ts'

/** A connection while it is shared. */
interface Tenure {
  readonly lent: Promise<PgPoolClient>
  users: number
  isBroken: boolean
}

interface Place {
  readonly client: PgPoolClient
  leave(isBroken?: boolean): void
}

/** Statements that are under way at the same time share one connection. It goes back with the last of them. */
export class Line {
  readonly #acquire: () => Promise<PgPoolClient>
  #tenure: Tenure | null = null

  constructor(acquire: () => Promise<PgPoolClient>) {
    this.#acquire = acquire
  }

  async join(): Promise<Place> {
    this.#tenure ??= { lent: this.#acquire(), users: 0, isBroken: false }
    const tenure = this.#tenure
    tenure.users += 1
    try {
      const client = await tenure.lent
      return { client, leave: (isBroken = false) => this.#leave(tenure, client, isBroken) }
    } catch (error) {
      this.#end(tenure)
      throw error
    }
  }

  #leave(tenure: Tenure, client: PgPoolClient, isBroken: boolean): void {
    tenure.users -= 1
    tenure.isBroken ||= isBroken
    if (tenure.users > 0 && !tenure.isBroken) return
    // Nobody joins a connection that is broken. Those who still use it leave later.
    this.#end(tenure)
    if (tenure.users === 0) client.release(tenure.isBroken)
  }

  #end(tenure: Tenure): void {
    if (this.#tenure === tenure) this.#tenure = null
  }
}
