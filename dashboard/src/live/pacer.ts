/** Turns many requests into few runs: one at a time, with a pause in between, and one more if requested meanwhile. */
export class Pacer {
  readonly #run: () => Promise<void>
  readonly #restMs: number
  #timer: ReturnType<typeof setTimeout> | null = null
  #isWished = false
  #isStopped = false

  constructor(run: () => Promise<void>, restMs: number) {
    this.#run = run
    this.#restMs = restMs
  }

  ask(): void {
    if (this.#isStopped) return
    this.#isWished = true
    if (this.#timer === null) this.#timer = setTimeout(() => void this.#turn(), 0)
  }

  stop(): void {
    this.#isStopped = true
    if (this.#timer !== null) clearTimeout(this.#timer)
  }

  async #turn(): Promise<void> {
    this.#isWished = false
    await this.#run()
    if (this.#isStopped) return
    this.#timer = setTimeout(() => {
      this.#timer = null
      if (this.#isWished) this.ask()
    }, this.#restMs)
  }
}
