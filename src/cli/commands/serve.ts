import { type Command, Option } from 'commander'
import { PORT_DEFAULT } from '../../http/index.ts'
import type { AnyJob } from '../../job/definition.ts'
import { type Cli, examples, type SharedOptions, withStoredMillUntil } from '../cli.ts'
import { LOG_LEVELS, type LogLevel } from '../log.ts'
import { loadJobs } from '../modules.ts'
import { addServingOptions, type ServingFlags, startServing } from '../serving.ts'
import { runUntilStopped } from '../until-stopped.ts'

interface ServeFlags extends SharedOptions, ServingFlags {
  readonly json?: true
  readonly logLevel: LogLevel
}

export function addServe(program: Command, cli: Cli): void {
  addServingOptions(
    program
      .command('serve')
      .summary('serve the HTTP API and the dashboard, without working')
      .description('Serve the HTTP API and the dashboard until SIGTERM or SIGINT. Then exit 0.')
      .argument(
        '[jobs...]',
        'modules (.ts, .js, .mjs) that define jobs: payloads are checked, and secrets in them hidden',
      ),
  )
    .addOption(new Option('--log-level <level>', 'the least that is logged').choices(LOG_LEVELS).default('info'))
    .addHelpText(
      'after',
      `${examples([
        ['millrace serve', `the jobs in ./millrace.db, at http://127.0.0.1:${PORT_DEFAULT}`],
        ['millrace serve jobs.ts --port 8080', 'with what jobs.ts defines, elsewhere'],
        ['millrace serve --host 0.0.0.0', 'for other machines, with tokens in MILLRACE_TOKENS'],
      ])}

Without a token it listens on this machine alone, and everyone on it may do everything.
A token is given as role:token or role/name:token, with the role viewer, operator or admin; the name stands in the audit.
Other users of the machine can see a command line: prefer MILLRACE_TOKENS, which takes several with spaces between them.`,
    )
    .action(async (modules: readonly string[], _options, command: Command) => {
      const flags = command.optsWithGlobals<ServeFlags>()
      await serve(cli, async () => (modules.length === 0 ? [] : loadJobs(modules)), flags)
    })
}

/** A server has nothing to drain that a second signal could cut short. */
async function serve(cli: Cli, load: () => Promise<readonly AnyJob[]>, flags: ServeFlags): Promise<void> {
  await runUntilStopped(cli, load, flags, async ({ stop, log, jobs }) => {
    await withStoredMillUntil(stop, flags.engine, { log, clock: cli.clock, jobs }, async (mill) => {
      const starting = startServing(cli, mill, { jobs, flags, log })
      const serving = await stop.unlessStopped(starting, (late) => late.close())
      if (serving === null) return
      await stop.unlessStopped(new Promise(() => {}))
      await serving.close()
    })
  })
}
