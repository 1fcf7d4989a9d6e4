import { type Command, Option } from 'commander'
import { AUDIT_ACTIONS, type AuditAction } from '../../engine/dead-letters.ts'
import { wholeNumber } from '../arguments.ts'
import { type Cli, examples, type SharedOptions } from '../cli.ts'
import { withDesk } from '../dead/letters.ts'
import { printAudit } from './dead.ts'

interface AuditFlags extends SharedOptions {
  readonly job?: string
  readonly by?: string
  readonly action?: AuditAction
  readonly limit: number
  readonly before?: number
}

const LIMIT_DEFAULT = 50

export function addAudit(program: Command, cli: Cli): void {
  program
    .command('audit')
    .summary('what operators did, by whom and why')
    .description(
      'List what was done to dead letters, types and schedules, newest first. Nobody can change or delete an entry.',
    )
    .option('--job <id>', 'only what was done to this job')
    .option('--by <name>', 'only what this person did')
    .addOption(new Option('--action <action>', 'only these acts').choices(AUDIT_ACTIONS))
    .option('--limit <n>', 'how many at most', wholeNumber, LIMIT_DEFAULT)
    .option('--before <no>', 'only entries before this number: the next page', wholeNumber)
    .addHelpText(
      'after',
      examples([
        ['millrace audit', `the newest ${LIMIT_DEFAULT}`],
        ['millrace audit --action purge --by ann', 'what ann has deleted'],
        ['millrace audit --job 01K5X… --json', 'one job, with the job before and after each act'],
      ]),
    )
    .action((_options, command: Command) => list(cli, command.optsWithGlobals<AuditFlags>()))
}

async function list(cli: Cli, flags: AuditFlags): Promise<void> {
  const { job, by, action, limit, before } = flags
  const filter = {
    limit,
    ...(job !== undefined && { jobId: job }),
    ...(by !== undefined && { who: by }),
    ...(action !== undefined && { action }),
    ...(before !== undefined && { before }),
  }
  const shared = { engine: flags.engine }
  const entries = await withDesk(cli, shared, (desk) => desk.audit(filter))
  if (flags.json) for (const entry of entries) cli.terminal.print(JSON.stringify(entry))
  else if (entries.length === 0) cli.terminal.print('Nothing was done.')
  else printAudit(cli, entries)
}
