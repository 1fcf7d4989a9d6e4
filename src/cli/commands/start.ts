import type { Command } from 'commander'
import { OptionError } from '../../errors.ts'
import { type Cli, examples } from '../cli.ts'
import { presetLines } from '../extensions.ts'
import { loadHandledJobs } from '../modules.ts'
import { runKeeper } from './keep.ts'
import { addPresetOptions, type PresetFlags, presetFlags, refusePresetFlags, runPreset } from './preset.ts'
import {
  addServingOptions,
  refuseServingOptions,
  type Serve,
  type ServingFlags,
  serveAll,
  serveNothing,
} from './serve.ts'
import { addWorkerOptions, DRAIN_HELP, runWorker, type WorkerFlags, workerOptions } from './work.ts'

interface StartFlags extends PresetFlags, WorkerFlags, ServingFlags {
  /** False for --no-http. */
  readonly http: boolean
}

export function addStart(program: Command, cli: Cli): void {
  const command = program
    .command('start')
    .summary('run your jobs, their schedules, the HTTP API and the dashboard in one process')
    .description(
      'Run everything in one process: a worker for your jobs, the keeper (schedules, reaping, retention), the HTTP API and the dashboard.',
    )
    .argument('[jobs...]', 'modules (.ts, .js, .mjs) that export jobs with handlers; without them no worker runs')
  addServingOptions(addWorkerOptions(command)).option('--no-http', 'without the HTTP API and the dashboard')
  addPresetOptions(command, cli)
    .addHelpText(
      'after',
      `${examples([
        ['millrace start jobs.ts', 'on ./millrace.db, created if missing'],
        ['millrace start jobs.ts --engine sqlite:/var/lib/app/jobs.db', 'on another store'],
        ['millrace start jobs.ts --port 8080', 'the dashboard on another port than 7420'],
        ['millrace start', 'keeper and dashboard, beside your own workers'],
        ['millrace start --preset conversations', 'the pipeline of docs/conversations.md'],
        ['millrace start --preset', 'which presets there are'],
        [
          'millrace start --preset escrow --engine kafka://127.0.0.1:9092 --presence redis://127.0.0.1:6379',
          'the seven workers of docs/escrow.md',
        ],
        ['millrace start workers.ts --preset framework', 'the workers of docs/framework.md, and your own beside them'],
      ])}

Presets:
${presetLines(cli.extensions).join('\n')}

${DRAIN_HELP}
For access to the dashboard, see: millrace help serve`,
    )
    .action((modules: readonly string[], _options, self: Command) => {
      const flags = presetFlags<StartFlags>(self)
      if (!flags.http) refuseServingOptions(self)
      return start(cli, modules, flags)
    })
}

async function start(cli: Cli, modules: readonly string[], flags: StartFlags): Promise<void> {
  const serve = (served: StartFlags): Serve => (served.http ? serveAll(cli, served) : serveNothing)
  if (flags.preset !== undefined) {
    if (flags.types !== undefined) throw new OptionError('--preset brings its own jobs; leave out --types')
    return runPreset(cli, flags.preset, flags, { modules, worker: workerOptions(flags), serve })
  }
  refusePresetFlags(flags)
  if (modules.length > 0)
    return runWorker(cli, () => loadHandledJobs(modules, flags.types ?? null), flags, serve(flags))
  if (flags.types !== undefined) throw new OptionError('--types chooses among jobs; name the module that exports them')
  return runKeeper(cli, async () => [], flags, { serve: serve(flags), whenIdle: flags.http ? 'go on' : 'refuse' })
}
