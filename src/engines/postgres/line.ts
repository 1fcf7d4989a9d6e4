import type { PgPoolClient } from './driver.ts'

/** A connection while it is shared. */
interface Loan {
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
  #loan: Loan | null = null

  constructor(acquire: () => Promise<PgPoolClient>) {
    this.#acquire = acquire
  }

  async join(): Promise<Place> {
    this.#loan ??= { lent: this.#acquire(), users: 0, isBroken: false }
    const loan = this.#loan
    loan.users += 1
    try {
      const client = await loan.lent
      return { client, leave: (isBroken = false) => this.#leave(loan, client, isBroken) }
    } catch (error) {
      this.#end(loan)
      throw error
    }
  }

  #leave(loan: Loan, client: PgPoolClient, isBroken: boolean): void {
    loan.users -= 1
    loan.isBroken ||= isBroken
    if (loan.users > 0 && !loan.isBroken) return
    // Nobody joins a connection that is broken. Those who still use it leave later.
    this.#end(loan)
    if (loan.users === 0) client.release(loan.isBroken)
  }

  #end(loan: Loan): void {
    if (this.#loan === loan) this.#loan = null
  }
}
