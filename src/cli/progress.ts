import type { Style, Terminal } from './terminal.ts'

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
