import { main } from '../src/cli/program.ts'
import { extensions } from './extensions.ts'

/** Runs a command line with everything that workloads bring to it, and exits with its code. */
export function runHere(args: readonly string[]): Promise<never> {
  return main(extensions, args)
}
