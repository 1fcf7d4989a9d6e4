import { type Command, Option } from 'commander'
import { AUDIT_ACTIONS, type AuditAction } from '../../engine/dead-letters.ts'
import { omitUndefined } from '../../job/known-options.ts'
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
    .summary('show what operators did, who and why')
    .description(
      'List what operators did to dead letters, types and schedules, newest first. Entries cannot be changed, and only `dead erase` removes some.',
    )
    .option('--job <id>', 'only acts on this job')
    .option('--by <name>', 'only acts of this person')
    .addOption(new Option('--action <action>', 'only acts of this kind').choices(AUDIT_ACTIONS))
    .option('--limit <n>', 'at most this many', wholeNumber, LIMIT_DEFAULT)
    .option('--before <no>', 'only entries before this number, for the next page', wholeNumber)
    .addHelpText(
      'after',
      examples([
        ['millrace audit', `the newest ${LIMIT_DEFAULT}`],
        ['millrace audit --action purge --by ann', 'what ann deleted'],
        ['millrace audit --job 01K5X… --json', 'one job, before and after each act'],
      ]),
    )
    .action((_options, command: Command) => list(cli, command.optsWithGlobals<AuditFlags>()))
}

async function list(cli: Cli, flags: AuditFlags): Promise<void> {
  const { job, by, action, limit, before } = flags
  const filter = omitUndefined({ limit, jobId: job, who: by, action, before })
  const entries = await withDesk(cli, { engine: flags.engine }, (desk) => desk.audit(filter))
  if (flags.json) for (const entry of entries) cli.terminal.print(JSON.stringify(entry))
  else if (entries.length === 0) cli.terminal.print('No entries.')
  else printAudit(cli, entries)
}
