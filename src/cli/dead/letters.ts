/** What the dead-letter commands share: options, the desk and how an outcome is printed. */
import type { Command } from 'commander'
import type { BulkOptions, BulkOutcome, Refusal } from '../../desk/bulk.ts'
import { type Desk, openDesk } from '../../desk/desk.ts'
import type { LetterFilter, Selection } from '../../desk/selection.ts'
import { MillraceError, OptionError } from '../../errors.ts'
import { omitUndefined } from '../../job/known-options.ts'
import { toIso } from '../../time/iso.ts'
import { duration, parseTime, wholeNumber } from '../arguments.ts'
import { type Cli, type SharedOptions, userName, withExistingMill } from '../cli.ts'
import { loadJobs } from '../modules.ts'
import { progressBar } from '../screen.ts'
import { onStopSignals } from '../stop-signals.ts'
import type { Terminal } from '../terminal.ts'

export interface FilterFlags {
  readonly type?: string
  readonly error?: string
  readonly search?: string
  readonly newerThan?: number
  readonly olderThan?: number
  readonly before?: number
  readonly limit?: number
}

export interface ActFlags extends SharedOptions {
  readonly who?: string
  readonly reason?: string
  readonly jobs?: readonly string[]
  readonly critical?: readonly string[]
  readonly maxReplays?: number
}

export interface BulkFlags extends ActFlags, FilterFlags {
  readonly dryRun?: true
  readonly rate?: number
  readonly force?: true
  readonly all?: true
}

export function withFilter(command: Command): Command {
  return command
    .option('--type <type>', 'only this type')
    .option('--error <fingerprint>', 'only this cause, as printed by dead list --groups')
    .option('--search <search>', 'only letters that a search finds, such as "tag:import-7 error:ECONNREFUSED"')
    .option('--newer-than <duration>', 'only letters that died within this time, such as 1h', duration)
    .option('--older-than <duration>', 'only letters that died longer ago', duration)
    .option(
      '--before <time>',
      'only letters that died before this time (ISO 8601), as printed by dead list --groups and --dry-run',
      before,
    )
    .option('--limit <n>', 'at most this many', wholeNumber)
}

function before(text: string): number {
  return parseTime(text, '--before').getTime()
}

export function withWho(command: Command): Command {
  return command.option('--who <name>', 'who does it (default: your user name)')
}

export function toFilter({ clock }: Cli, flags: FilterFlags): LetterFilter {
  const { type, error, search, newerThan, olderThan, limit } = flags
  if (flags.before !== undefined && olderThan !== undefined) {
    throw new OptionError('--before and --older-than exclude each other; give one')
  }
  const nowMs = clock.nowMs()
  return omitUndefined({
    type,
    fingerprint: error,
    search,
    sinceMs: newerThan === undefined ? undefined : nowMs - newerThan,
    beforeMs: olderThan === undefined ? flags.before : nowMs - olderThan,
    limit,
  })
}

/** Requires --all for everything: a forgotten argument must not select all letters. */
export function toSelection(cli: Cli, ids: readonly string[], flags: BulkFlags): Selection {
  const filter = toFilter(cli, flags)
  const isFiltered = Object.keys(filter).length > 0
  if (ids.length > 0 && (isFiltered || flags.all)) {
    throw new OptionError('ids and a filter exclude each other; give one')
  }
  if (ids.length > 0) return { ids }
  if (isFiltered || flags.all) return filter
  throw new OptionError('no letters are selected; give ids, a filter such as --type, or --all')
}

export function acting(flags: ActFlags): { readonly who: string; readonly reason?: string } {
  return omitUndefined({ who: flags.who ?? userName(), reason: flags.reason })
}

export async function withDesk<Answer>(
  cli: Cli,
  flags: ActFlags,
  use: (desk: Desk) => Promise<Answer>,
): Promise<Answer> {
  const jobs = flags.jobs === undefined ? [] : await loadJobs(flags.jobs)
  const { critical, maxReplays } = flags
  return withExistingMill(cli, flags, (mill) =>
    use(
      openDesk(mill, {
        jobs,
        clock: cli.clock,
        ...omitUndefined({ critical, replaysMax: maxReplays }),
      }),
    ),
  )
}

/** Shows progress. Ctrl-C ends the work between two pages. */
export async function runBulk(
  cli: Cli,
  flags: BulkFlags,
  words: { readonly doing: string; readonly done: string; readonly selection: Selection },
  act: (options: BulkOptions) => Promise<BulkOutcome>,
): Promise<void> {
  const stop = new AbortController()
  const abort = (): void => stop.abort()
  const stopListening = onStopSignals(cli.clock, abort, abort)
  const bar = progressBar(cli.terminal, words.doing)
  try {
    const outcome = await act({
      signal: stop.signal,
      onProgress: ({ seen, total }) => bar.show(seen, total),
      dryRun: flags.dryRun ?? false,
      force: flags.force ?? false,
      ...omitUndefined({ rate: flags.rate }),
    })
    bar.clear()
    tell(cli, flags, words.done, outcome)
    complain(words, outcome)
  } finally {
    bar.clear()
    stopListening()
  }
}

const REASONS = {
  'replayed-too-often': 'replayed too often (--force)',
  unreplayable: 'of unknown origin (discard them)',
  critical: 'critical (discard them first, or --force)',
  changed: 'changed meanwhile, or their key is in use',
  unfinished: 'still running or waiting, or needed by a job that is (cancel them first)',
  unknown: 'unknown to the store and its audit',
} as const satisfies Record<Refusal, string>

function tell({ terminal }: Cli, flags: BulkFlags, done: string, outcome: BulkOutcome): void {
  if (flags.json) {
    terminal.print(JSON.stringify(outcome))
    return
  }
  terminal.print(outcome.dryRun ? `${outcome.done} would be ${done}; nothing was changed` : `${outcome.done} ${done}`)
  if (outcome.dryRun) tellBefore(terminal, outcome.selection)
  for (const [name, words] of Object.entries(REASONS)) {
    const count = Object.entries(outcome.refused).find(([why]) => why === name)?.[1]
    if (count !== undefined) terminal.print(`${count} left as they are: ${words}`)
  }
}

/** How to act on exactly the letters that were counted, and not on later ones. */
export function tellBefore(terminal: Terminal, selection: Selection): void {
  if ('ids' in selection || selection.beforeMs === undefined || selection.beforeMs === 0) return
  terminal.print(terminal.paint('dim', `exactly these: add --before ${toIso(selection.beforeMs)}`))
}

function complain(words: { readonly done: string; readonly selection: Selection }, outcome: BulkOutcome): void {
  if (outcome.interrupted) {
    throw new MillraceError('ERR_STOPPING', 'interrupted; repeat the command to continue')
  }
  if (!('ids' in words.selection)) return
  const left = new Set(words.selection.ids).size - outcome.done
  if (left === 0) return
  throw new MillraceError(
    'ERR_DESK_REFUSED',
    `${left} of the ids were not ${words.done}; look with 'millrace job <id>'`,
  )
}
