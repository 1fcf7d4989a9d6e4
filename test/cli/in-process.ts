/** Runs a command line in this process: fast enough to try every way to get it wrong. */
import { PassThrough } from 'node:stream'
import { extensions } from '../../bin/extensions.ts'
import { run } from '../../src/cli/program.ts'
import type { Terminal } from '../../src/cli/terminal.ts'

export interface Said {
  readonly code: number
  readonly out: string
  readonly err: string
}

/** No screen: what is printed goes to `print`. */
export function quietTerminal(print: Terminal['print']): Terminal {
  return {
    ...{ out: new PassThrough(), columns: null, print, complain: () => {} },
    paint: (_style, text) => text,
    flush: async () => {},
    outliveReader: () => {},
    lostReader: false,
  }
}

export async function runCli(args: readonly string[], columns: number | null = null): Promise<Said> {
  let out = ''
  let err = ''
  const print = (line: string): void => {
    out += `${line}\n`
  }
  const complain = (line: string): void => {
    err += `${line}\n`
  }
  const terminal = { ...quietTerminal(print), columns, complain }
  return { code: await run(args, terminal, extensions), out, err }
}
