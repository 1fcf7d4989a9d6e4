import type { Command } from 'commander'
import { MillraceError, UnknownJobError } from '../../errors.ts'
import { audited, type Cli, examples, type SharedOptions, userName, withExistingMill } from '../cli.ts'

interface CancelOptions extends SharedOptions {
  readonly reason: string
  readonly who?: string
  readonly dryRun?: true
}

export function addCancel(program: Command, cli: Cli): void {
  program
    .command('cancel')
    .summary('end a job that has not finished')
    .description('End a job that has not finished, even while another process runs it.')
    .argument('<id>', 'the id that enqueue printed')
    .option('--reason <text>', 'why; recorded in the history and the audit', 'cancelled from the command line')
    .option('--who <name>', 'who does it (default: your user name)')
    .option('--dry-run', 'only say whether it can be cancelled')
    .addHelpText(
      'after',
      examples([
        ['millrace cancel 01K5X…', 'a waiting job never starts; a running one gets its signal aborted'],
        ['millrace cancel 01K5X… --reason "sent twice"', 'say why'],
        ['millrace cancel 01K5X… --dry-run', 'check only; nothing is changed'],
      ]),
    )
    .action((id: string, _options, command: Command) => cancelJob(cli, id, command.optsWithGlobals<CancelOptions>()))
}

async function cancelJob(cli: Cli, id: string, options: CancelOptions): Promise<void> {
  const by = { who: options.who ?? userName(), reason: options.reason }
  const dryRun = options.dryRun === true
  await withExistingMill(cli, options, async (mill) => {
    const [before] = (await mill.engine.inspector?.find([id])) ?? []
    if (!dryRun && (await mill.cancel(id, by))) {
      const facts = before == null ? {} : { type: before.type, before: { state: before.state } }
      return audited(cli, mill, { ...by, action: 'cancel', jobId: id, ...facts })
    }
    const view = await mill.job(id)
    if (view === null) throw new UnknownJobError(id)
    if (dryRun && (view.state === 'queued' || view.state === 'in_progress')) return
    throw new MillraceError(
      'ERR_STATE_TRANSITION',
      `job ${id} is ${view.state}; only a job that has not finished can be cancelled`,
    )
  })
  const said = dryRun ? `${id} would be cancelled; nothing was changed` : `${id} cancelled`
  cli.terminal.print(options.json ? JSON.stringify({ id, cancelled: !dryRun, dryRun, ...by }) : said)
}
