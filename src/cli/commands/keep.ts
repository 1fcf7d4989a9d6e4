import { type Command, Option } from 'commander'
import { type Cli, duration, examples } from '../cli.ts'
import { LOG_LEVELS } from '../log.ts'
import { loadJobs } from '../modules.ts'
import { type KeeperFlags, runKeeper } from '../run-keeper.ts'

export function addKeep(program: Command, cli: Cli): void {
  program
    .command('keep')
    .summary('run schedules, reap dead workers and tidy up, without working')
    .description('Run what is due on the clock until SIGTERM or SIGINT: schedules, reaping, tidying up. Then exit 0.')
    .argument(
      '[jobs...]',
      'modules (.ts, .js, .mjs) that define jobs: their schedules are stored, and their rules hold',
    )
    .option('--interval <duration>', 'another keeper takes over within twice this; 5s unless told', duration)
    .option('--reap <duration>', 'how often to look for jobs of dead workers; 30s unless told', duration)
    .option('--no-reap', 'leave that to another process')
    .addOption(new Option('--log-level <level>', 'the least that is logged').choices(LOG_LEVELS).default('info'))
    .addHelpText(
      'after',
      `${examples([
        ['millrace keep', 'whatever is stored'],
        ['millrace keep jobs.ts', 'and the schedules that jobs.ts declares'],
        ['millrace keep --interval 1s', 'so that another one takes over within 2 seconds'],
      ])}

Every worker runs a keeper too, so this is for machines on which no worker runs, or where none should spend its time on it.
Start as many as you like: one is active, and the others wait to take over. A tick is run once, whoever runs it.`,
    )
    .action(async (modules: readonly string[], _options, command: Command) => {
      const flags = command.optsWithGlobals<KeeperFlags>()
      await runKeeper(cli, async () => (modules.length === 0 ? [] : loadJobs(modules)), flags)
    })
}
