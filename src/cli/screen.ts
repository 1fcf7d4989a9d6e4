import type { Terminal } from './terminal.ts'

/** The terminal's second screen: drawn in place, and left as it was found whatever ends the process. */
export class Screen {
  readonly #out: Terminal['out']
  #entered = false
  readonly #leaveAtExit = (): void => this.leave()

  constructor(out: Terminal['out']) {
    this.#out = out
  }

  get columns(): number {
    return this.#out.columns || 80
  }

  get rows(): number {
    return this.#out.rows || 24
  }

  enter(): void {
    if (this.#entered) return
    this.#entered = true
    this.#out.write('\x1b[?1049h\x1b[?25l\x1b[2J')
    process.once('exit', this.#leaveAtExit)
  }

  /** Line by line over the old frame: clearing first would flicker. */
  draw(lines: readonly string[]): void {
    if (!this.#entered) return
    this.#out.write(`\x1b[H${lines.map((line) => `${line}\x1b[K`).join('\r\n')}\x1b[J`)
  }

  leave(): void {
    if (!this.#entered) return
    this.#entered = false
    this.#out.write('\x1b[?25h\x1b[?1049l')
    process.off('exit', this.#leaveAtExit)
  }
}
