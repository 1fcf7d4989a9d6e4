import type { CliExtensions } from './extensions.ts'
import { run } from './program.ts'
import { systemTerminal } from './terminal.ts'
import { boundYoungHeap } from './young-heap.ts'

/** The whole process: runs the command line of this process and exits with its code. */
export async function main(extensions: CliExtensions): Promise<never> {
  boundYoungHeap()
  const terminal = systemTerminal()
  const exitCode = await run(process.argv.slice(2), terminal, extensions)
  // A job module may hold open sockets or timers, and a handler may ignore its signal: neither keeps a stopped
  // process alive. What was printed is flushed first.
  await terminal.flush()
  process.exit(exitCode)
}
