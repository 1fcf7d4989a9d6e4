import type { Style, Terminal } from './terminal.ts'

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

/** What a raw terminal sends for Ctrl-C, which it no longer turns into a signal. */
const CTRL_C = '\u0003'

/** Calls `quit` when q or Ctrl-C is pressed. Without a keyboard there is nothing to listen to. Returns the end of it. */
export function onQuitKey(keyboard: NodeJS.ReadStream, quit: () => void): () => void {
  if (keyboard.isTTY !== true) return () => {}
  const listener = (typed: Buffer): void => {
    if (/q/i.test(String(typed)) || String(typed).includes(CTRL_C)) quit()
  }
  keyboard.setRawMode(true)
  keyboard.on('data', listener)
  keyboard.resume()
  return () => {
    keyboard.off('data', listener)
    keyboard.setRawMode(false)
    keyboard.pause()
  }
}

export interface Bar {
  /** `total` null: how much there is to do is not known. */
  show(done: number, total: number | null): void
  /** Clears the line for what is printed next. */
  clear(): void
}

const WIDTH = 24

/** A bar of this many cells; `share` runs from 0 to 1. */
export function drawBar(share: number, width: number, paint: (style: Style, text: string) => string): string {
  const filled = Math.round(share * width)
  return `${paint('cyan', '█'.repeat(filled))}${paint('dim', '░'.repeat(width - filled))}`
}

/** How far a job says it is, from 0 to 1: `{ percent }` or `{ done, total }`. Null when it says something else. */
export function shareOf(progress: unknown): number | null {
  if (typeof progress !== 'object' || progress === null) return null
  const { percent, done, total } = progress as Readonly<Record<string, unknown>>
  const share =
    typeof percent === 'number'
      ? percent / 100
      : typeof done === 'number' && typeof total === 'number' && total > 0
        ? done / total
        : Number.NaN
  return Number.isNaN(share) ? null : Math.max(0, Math.min(1, share))
}

const SILENT: Bar = { show: () => {}, clear: () => {} }

/** A line that rewrites itself on a terminal; a pipe gets nothing of it. */
export function progressBar(terminal: Terminal, what: string): Bar {
  if (terminal.columns === null) return SILENT
  let shown = false
  return {
    show: (done, total) => {
      shown = true
      terminal.out.write(`\r\u001b[K${lineOf(done, total)} ${what}`)
    },
    clear: () => {
      if (shown) terminal.out.write('\r\u001b[K')
    },
  }
}

function lineOf(done: number, total: number | null): string {
  if (total === null || total === 0) return String(done)
  const share = Math.min(1, done / total)
  const bar = drawBar(share, WIDTH, (_style, text) => text)
  return `${bar} ${Math.floor(share * 100)}% ${done}/${total}`
}
