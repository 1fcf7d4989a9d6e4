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
