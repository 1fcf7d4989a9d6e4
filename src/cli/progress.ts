import type { Terminal } from './terminal.ts'

export interface Bar {
  /** `total` null: how much there is to do is not known. */
  show(done: number, total: number | null): void
  /** Clears the line for what is printed next. */
  clear(): void
}

const WIDTH = 24
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
  const filled = Math.round(share * WIDTH)
  return `${'█'.repeat(filled)}${'░'.repeat(WIDTH - filled)} ${Math.floor(share * 100)}% ${done}/${total}`
}
