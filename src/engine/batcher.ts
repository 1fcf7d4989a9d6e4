interface Call<Item, Answer> {
  readonly items: readonly Item[]
  resolve(answers: readonly Answer[]): void
  reject(error: unknown): void
}

export interface BatcherBounds {
  /** Shared statements on their way at once. */
  readonly flightsMax: number
  readonly itemsMax: number
  /** Whether a shared statement has changed nothing because of one item. One whose answer was lost must not be sent again. */
  isWorthRepeating(error: unknown): boolean
  /** Wait for all calls of this turn of the event loop: for calls that follow answers of other servers. Default: false. */
  readonly takesWholeTurn?: boolean
}

/**
 * Calls made in one go, or while earlier ones are on their way, share one statement: a hundred
 * concurrent enqueues then cost one round trip and one commit. If the shared statement fails, each call is run by
 * itself, so that one that cannot succeed fails alone.
 */
export class Batcher<Item, Answer> {
  readonly #run: (items: readonly Item[]) => Promise<readonly Answer[]>
  readonly #flightsMax: number
  readonly #itemsMax: number
  readonly #isWorthRepeating: (error: unknown) => boolean
  readonly #later: (depart: () => void) => unknown
  #waiting: Call<Item, Answer>[] = []
  readonly #inFlight = new Set<Promise<void>>()
  #scheduled = false

  /** `run` answers each item in order, all or nothing. */
  constructor(
    run: (items: readonly Item[]) => Promise<readonly Answer[]>,
    { flightsMax, itemsMax, isWorthRepeating, takesWholeTurn = false }: BatcherBounds,
  ) {
    this.#run = run
    this.#flightsMax = flightsMax
    this.#itemsMax = itemsMax
    this.#isWorthRepeating = isWorthRepeating
    // Mostly not a whole turn: a call that comes alone would only wait, and many that come together fill the next flight.
    this.#later = takesWholeTurn ? setImmediate : queueMicrotask
  }

  add(items: readonly Item[]): Promise<readonly Answer[]> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ items, resolve, reject })
      this.#schedule()
    })
  }

  /** Resolves when everything that was added is answered. */
  async idle(): Promise<void> {
    while (this.#waiting.length > 0 || this.#inFlight.size > 0) {
      await (this.#inFlight.size > 0 ? Promise.all(this.#inFlight) : new Promise((resolve) => setImmediate(resolve)))
    }
  }

  #schedule(): void {
    if (this.#scheduled || this.#inFlight.size >= this.#flightsMax || this.#waiting.length === 0) return
    this.#scheduled = true
    this.#later(() => {
      this.#scheduled = false
      this.#depart()
    })
  }

  #depart(): void {
    const calls = this.#take()
    if (calls.length === 0) return
    const flight = this.#fly(calls).finally(() => {
      this.#inFlight.delete(flight)
      this.#schedule()
    })
    this.#inFlight.add(flight)
    this.#schedule()
  }

  /** At least one call, however big; more as long as they fit. */
  #take(): Call<Item, Answer>[] {
    let items = 0
    let calls = 0
    for (const call of this.#waiting) {
      if (calls > 0 && items + call.items.length > this.#itemsMax) break
      items += call.items.length
      calls += 1
    }
    return this.#waiting.splice(0, calls)
  }

  async #fly(calls: readonly Call<Item, Answer>[]): Promise<void> {
    const [first, ...others] = calls
    if (first === undefined) return
    try {
      const answers = await this.#run(others.length === 0 ? first.items : calls.flatMap((call) => call.items))
      let from = 0
      for (const call of calls) {
        call.resolve(answers.slice(from, from + call.items.length))
        from += call.items.length
      }
    } catch (error) {
      if (others.length === 0 || !this.#isWorthRepeating(error)) for (const call of calls) call.reject(error)
      else for (const call of calls) await this.#fly([call])
    }
  }
}
