import { type Command, Option } from 'commander'
import type { Finished, RetentionRule } from '../../engine/retention.ts'
import { MillraceError, OptionError } from '../../errors.ts'
import { sweepOnce } from '../../keeper/retention.ts'
import { duration } from '../arguments.ts'
import { type Cli, examples, type SharedOptions, userName, withExistingMill } from '../cli.ts'
import { loadJobs } from '../modules.ts'
import { progressBar } from '../screen.ts'
import { onStopSignals } from '../stop-signals.ts'

interface CleanFlags extends SharedOptions {
  readonly olderThan: number
  readonly state: Finished
  readonly type?: string
  readonly reason?: string
  readonly who?: string
  readonly jobs?: readonly string[]
  readonly critical?: readonly string[]
  readonly dryRun?: true
  readonly yes?: true
  readonly force?: true
}

const DAYS_DEFAULT = 7
const DAY_MS = 86_400_000

export function addClean(program: Command, cli: Cli): void {
  program
    .command('clean')
    .summary('remove finished jobs, once')
    .description('Remove old finished jobs with their history, once, in small steps beside running workers.')
    .addOption(
      new Option('--older-than <duration>', 'only jobs that finished longer ago')
        .argParser(duration)
        .default(DAYS_DEFAULT * DAY_MS, `${DAYS_DEFAULT}d`),
    )
    .addOption(
      new Option('--state <state>', 'which jobs; ended means cancelled, superseded or discarded')
        .choices(['completed', 'ended', 'dead'])
        .default('completed'),
    )
    .option('--type <type>', 'only of this type')
    .option('--dry-run', 'only count them')
    .option('--yes', 'confirm the removal')
    .option('--reason <text>', 'why dead letters are removed; recorded in the audit')
    .option('--who <name>', 'who does it (default: your user name)')
    .option('--jobs <modules...>', 'modules that define the types, to keep dead letters of critical ones')
    .option('--critical <types...>', 'types whose dead letters are kept')
    .option('--force', 'remove dead letters of critical types too')
    .addHelpText(
      'after',
      `${examples([
        ['millrace clean --dry-run', 'count the completed jobs older than seven days'],
        ['millrace clean --older-than 1d --yes', 'remove jobs that completed over a day ago'],
        ['millrace clean --state ended --type refresh --yes', 'superseded versions of one type'],
        [
          'millrace clean --state dead --older-than 90d --jobs jobs.ts --reason "too old"',
          'dead letters, recorded in the audit',
        ],
      ])}

Keepers do this by the workers' retention policy. Use it without keepers, or before a backup.`,
    )
    .action((_options, command: Command) => clean(cli, command.optsWithGlobals<CleanFlags>()))
}

/** Dead letters need a reason and a decision about critical types, as at the desk; other jobs need --yes. */
function checkConsent(flags: CleanFlags): void {
  if (flags.dryRun) return
  if (flags.state !== 'dead') {
    if (flags.yes) return
    throw new OptionError('this removes jobs permanently; check with --dry-run, then add --yes')
  }
  if (flags.reason === undefined) throw new OptionError('removing dead letters needs a reason; add --reason "…"')
  if (flags.jobs === undefined && flags.critical === undefined && !flags.force) {
    throw new OptionError(
      'the critical types are unknown; name your modules with --jobs, the types with --critical, or add --force',
    )
  }
}

async function rulesOf(flags: CleanFlags, nowMs: number): Promise<readonly RetentionRule[]> {
  const { state: what, type, olderThan } = flags
  const beforeMs = nowMs - olderThan
  const wanted: readonly RetentionRule[] =
    type === undefined
      ? [{ what, beforeMs }]
      : [
          { what, type, beforeMs },
          { what, beforeMs: null },
        ]
  if (what !== 'dead' || flags.force) return wanted
  const jobs = flags.jobs === undefined ? [] : await loadJobs(flags.jobs)
  const critical = [...jobs.filter((job) => job.critical).map((job) => job.type), ...(flags.critical ?? [])]
  // The first rule that names a type counts.
  return [...critical.map((each): RetentionRule => ({ what, type: each, beforeMs: null })), ...wanted]
}

async function clean(cli: Cli, flags: CleanFlags): Promise<void> {
  checkConsent(flags)
  const { terminal, clock } = cli
  const dryRun = flags.dryRun ?? false
  const rules = await rulesOf(flags, clock.nowMs())
  const stop = new AbortController()
  const abort = (): void => stop.abort()
  const stopListening = onStopSignals(clock, abort, abort)
  const bar = progressBar(terminal, dryRun ? 'counting' : 'removing')
  try {
    const removed = await withExistingMill(cli, flags, ({ engine }) =>
      sweepOnce({ engine, clock }, rules, {
        signal: stop.signal,
        dryRun,
        onProgress: (count) => bar.show(count, null),
        ...(flags.reason !== undefined && { by: { who: flags.who ?? userName(), reason: flags.reason } }),
      }),
    )
    bar.clear()
    tell(cli, flags, { state: flags.state, removed, dryRun, interrupted: stop.signal.aborted })
  } finally {
    bar.clear()
    stopListening()
  }
}

interface Cleaned {
  readonly state: Finished
  readonly removed: number
  readonly dryRun: boolean
  readonly interrupted: boolean
}

const NAMES: Readonly<Record<Finished, string>> = {
  completed: 'completed jobs',
  ended: 'ended jobs',
  dead: 'dead letters',
}

function tell({ terminal }: Cli, flags: CleanFlags, cleaned: Cleaned): void {
  const { removed, dryRun, interrupted } = cleaned
  if (flags.json) terminal.print(JSON.stringify(cleaned))
  else if (dryRun) terminal.print(`${removed} ${NAMES[flags.state]} would be removed; nothing was changed`)
  else terminal.print(`${removed} ${NAMES[flags.state]} removed`)
  if (interrupted) throw new MillraceError('ERR_STOPPING', 'interrupted; repeat the command to continue')
}
