/**
 * Counts deliveries by index. A benchmark that loses or repeats work is not fast but wrong, so every measurement is
 * checked with one of these and fails on the first job that is missing, repeated or unknown.
 */
export class Ledger {
  readonly #times: Uint8Array
  readonly #waiting = new Set<{ readonly count: number; readonly resolve: () => void }>()
  #distinct = 0
  #repeats = 0
  #strays = 0
  #firstRepeat: number | null = null

  constructor(count: number) {
    this.#times = new Uint8Array(count)
  }

  get distinct(): number {
    return this.#distinct
  }

  deliver(n: number): void {
    const times = this.#times[n]
    if (times === undefined) {
      this.#strays += 1
      return
    }
    if (times > 0) {
      this.#repeats += 1
      this.#firstRepeat ??= n
      return
    }
    this.#times[n] = 1
    this.#distinct += 1
    for (const waiter of this.#waiting) if (this.#distinct >= waiter.count) waiter.resolve()
  }

  /**
   * Resolves when `count` different jobs have arrived, or when none has for `stallMs`. The pace of a contender does not
   * matter, only that it goes on.
   */
  async reach(count: number, stallMs: number): Promise<void> {
    if (this.#distinct >= count) return
    const arrived = Promise.withResolvers<void>()
    const waiter = { count, resolve: arrived.resolve }
    this.#waiting.add(waiter)
    let before = this.#distinct
    const watch = setInterval(() => {
      if (this.#distinct === before) arrived.resolve()
      before = this.#distinct
    }, stallMs)
    await arrived.promise
    clearInterval(watch)
    this.#waiting.delete(waiter)
  }

  /** What is wrong with a run in which every job should have arrived. Empty when all is well. */
  faults(): string[] {
    const missing = this.#times.indexOf(0)
    const faults = this.faultsOfPart()
    if (missing !== -1)
      faults.unshift(`${this.#times.length - this.#distinct} of ${this.#times.length} jobs missing, first ${missing}`)
    return faults
  }

  /** The same for a run that was to deliver only a part. */
  faultsOfPart(): string[] {
    const faults: string[] = []
    if (this.#firstRepeat !== null)
      faults.push(`${this.#repeats} repeated deliveries, first of job ${this.#firstRepeat}`)
    if (this.#strays > 0) faults.push(`${this.#strays} deliveries of jobs that nobody enqueued`)
    return faults
  }
}
