import type { Style, Terminal } from './terminal.ts'

/** The terminal's alternate screen. It is left as it was found, however the process ends. */
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

/** In raw mode Ctrl-C is a character, not a signal. */
const CTRL_C = '\u0003'

/** Calls `quit` for q or Ctrl-C, on a terminal only. Returns the function that stops listening. */
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
  /** `total` is null if unknown. */
  show(done: number, total: number | null): void
  clear(): void
}

const WIDTH = 24

/** `share` runs from 0 to 1, `width` is in cells. */
export function drawBar(share: number, width: number, paint: (style: Style, text: string) => string): string {
  const filled = Math.round(share * width)
  return `${paint('cyan', '█'.repeat(filled))}${paint('dim', '░'.repeat(width - filled))}`
}

/** A job's progress from 0 to 1, if it has the form `{ percent }` or `{ done, total }`; otherwise null. */
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

/** A line that rewrites itself on a terminal, and nothing elsewhere. */
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
