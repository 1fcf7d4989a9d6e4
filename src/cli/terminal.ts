import { styleText } from 'node:util'

export type Style = 'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'blue' | 'cyan' | 'magenta'

/** Where a command prints. Answers go to `out`, errors to `err`, so that a pipe carries answers only. */
export interface Terminal {
  /** A terminal also says how large it is now. */
  readonly out: NodeJS.WritableStream & { readonly columns?: number; readonly rows?: number }
  /** The width to fit a table into, or null when a program reads the output and nothing may be cut. */
  readonly columns: number | null
  print(line: string): void
  complain(line: string): void
  /** Coloured on a terminal, plain elsewhere and under NO_COLOR. */
  paint(style: Style, text: string): string
  /** Resolves when everything printed has been handed to the system. */
  flush(): Promise<void>
}

const COLUMNS_DEFAULT = 80

export type Surroundings = Pick<NodeJS.Process, 'stdout' | 'stderr' | 'env'>

export function systemTerminal({ stdout, stderr, env }: Surroundings = process): Terminal {
  const coloured = stdout.isTTY === true && (env.NO_COLOR ?? '') === '' && env.TERM !== 'dumb'
  // `millrace jobs | head` closes the pipe early: the reader has what it wanted, so this is no error.
  stdout.on('error', (error) => {
    if (Reflect.get(error, 'code') === 'EPIPE') process.exit(0)
    throw error
  })
  return {
    out: stdout,
    columns: stdout.isTTY === true ? stdout.columns || COLUMNS_DEFAULT : null,
    print: (line) => void stdout.write(`${line}\n`),
    complain: (line) => void stderr.write(`${line}\n`),
    paint: (style, text) => (coloured ? styleText(style, text, { validateStream: false }) : text),
    flush: async () => {
      await Promise.all([flushed(stdout), flushed(stderr)])
    },
  }
}

function flushed(stream: NodeJS.WritableStream): Promise<void> {
  return new Promise((resolve) => void stream.write('', () => resolve()))
}

/**
 * Text that someone else wrote (a type, an error, a payload) as one harmless line: an escape sequence in it must not
 * move the reader's cursor or forge a line.
 */
export function printable(text: string): string {
  return text.replace(/\s+/g, ' ').replace(/\p{Cc}/gu, '�')
}
