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

export async function runCli(args: readonly string[], columns: number | null = null): Promise<Said> {
  let out = ''
  let err = ''
  const terminal: Terminal = {
    out: new PassThrough(),
    columns,
    print: (line) => {
      out += `${line}\n`
    },
    complain: (line) => {
      err += `${line}\n`
    },
    paint: (_style, text) => text,
    flush: async () => {},
    outliveReader: () => {},
    lostReader: false,
  }
  return { code: await run(args, terminal, extensions), out, err }
}
