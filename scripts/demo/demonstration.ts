/** What the demonstrations share: their arguments, how they are interrupted, and how they end. */
import { parseArgs } from 'node:util'
import { StopRequest } from '../../src/cli/stop-signals.ts'
import { messageOf } from '../../src/errors.ts'
import { systemClock } from '../../src/time/clock.ts'
import { terminal } from './progress.ts'

/** As a shell reports a program that Ctrl-C ended. */
const INTERRUPTED = 130

/** Resolves to whether everything that it printed was found to be true. */
export type Demonstrate = (stop: StopRequest, keep: boolean) => Promise<boolean>

/** Runs it as a program: `npm run <script> -- [--keep]`. It exits with 0 only if all was true. */
export async function runDemonstration(script: string, kept: string, demonstrate: Demonstrate): Promise<never> {
  const code = await exitCode(script, kept, demonstrate).catch((error: unknown) => {
    terminal.complain(`error: ${messageOf(error)}`)
    return 1
  })
  await terminal.flush()
  process.exit(code)
}

async function exitCode(script: string, kept: string, demonstrate: Demonstrate): Promise<number> {
  const { values } = parseArgs({
    options: { keep: { type: 'boolean' }, open: { type: 'boolean' }, help: { type: 'boolean', short: 'h' } },
  })
  if (values.help === true) {
    terminal.print(`npm run ${script} -- [--keep]\n\n  --keep, --open   leave ${kept} until Ctrl-C`)
    return 0
  }
  const stop = new StopRequest(systemClock)
  try {
    const isTrue = await demonstrate(stop, values.keep === true || values.open === true)
    if (stop.signal.aborted && !isTrue) return interrupted()
    terminal.print(isTrue ? '\nAll of it is true; everything was stopped.' : '\nSomething above is not true.')
    return isTrue ? 0 : 1
  } catch (error) {
    // Ctrl-C reaches the processes it started too, so their end is no fault.
    if (stop.signal.aborted) return interrupted()
    throw error
  } finally {
    stop.close()
  }
}

function interrupted(): number {
  terminal.print('\nInterrupted; everything was stopped.')
  return INTERRUPTED
}
