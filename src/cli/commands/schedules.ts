import type { Command } from 'commander'
import { UnknownScheduleError } from '../../errors.ts'
import { omitUndefined } from '../../job/known-options.ts'
import { parseCron, previewCron } from '../../time/cron.ts'
import { wholeNumber } from '../arguments.ts'
import { type Cli, examples, type SharedOptions } from '../cli.ts'
import { formatDuration, formatTime } from '../format.ts'
import {
  addReschedule,
  addScheduleAdd,
  addSchedulePause,
  addScheduleRemove,
  addScheduleResume,
  addScheduleRun,
} from '../schedules/change.ts'
import { printFacts, printSchedules, withoutPayload, withSchedules } from '../schedules/print.ts'

export function addSchedules(program: Command, cli: Cli): void {
  const schedules = program
    .command('schedules')
    .summary('list, add, pause, reschedule or run schedules')
    .description('List schedules and change them. They are stored, so changes survive restarts.')
    .addHelpText(
      'after',
      examples([
        ['millrace schedules', 'all of them, with overdue ones marked'],
        [`millrace schedules add nightly report '0 3 * * *' --tz Europe/Berlin`, 'every night at three'],
        ['millrace schedules pause nightly', 'until it is resumed'],
        [`millrace schedules preview '0 3 * * MON'`, 'the next ten runs'],
      ]),
    )
  const commands = [
    addScheduleList,
    addScheduleShow,
    addScheduleAdd,
    addSchedulePause,
    addScheduleResume,
    addReschedule,
    addScheduleRun,
    addScheduleRemove,
    addSchedulePreview,
  ]
  for (const add of commands) add(schedules, cli)
}

interface ShowFlags extends SharedOptions {
  readonly payload?: true
}

interface PreviewFlags extends SharedOptions {
  readonly tz?: string
  readonly count: number
}

export function addScheduleList(schedules: Command, cli: Cli): void {
  schedules
    .command('list', { isDefault: true })
    .summary('list schedules and mark overdue ones')
    .description('List schedules by name. OVERDUE means that a tick was due and no keeper has run it.')
    .addHelpText(
      'after',
      examples([
        ['millrace schedules', 'all of them'],
        ['millrace schedules --json', 'for a script'],
      ]),
    )
    .action(async (_options, command: Command) => {
      const flags = command.optsWithGlobals<SharedOptions>()
      const views = await withSchedules(cli, flags, (timetable) => timetable.list())
      if (flags.json) {
        for (const view of views) cli.terminal.print(JSON.stringify(withoutPayload(view, cli.clock.nowMs())))
      } else if (views.length === 0) cli.terminal.print('No schedules.')
      else printSchedules(cli, views)
    })
}

export function addScheduleShow(schedules: Command, cli: Cli): void {
  schedules
    .command('show')
    .summary('show one schedule')
    .description('Show everything about one schedule.')
    .argument('<name>', 'its name')
    .option('--payload', 'also show the payload, which may hold secrets')
    .addHelpText('after', examples([['millrace schedules show nightly', 'when and how it runs']]))
    .action(async (name: string, _options, command: Command) => {
      const flags = command.optsWithGlobals<ShowFlags>()
      const view = await withSchedules(cli, flags, (timetable) => timetable.find(name))
      if (view === null) throw new UnknownScheduleError(name)
      const withPayload = flags.payload ?? false
      if (!flags.json) return printFacts(cli, view, withPayload)
      const payload = withPayload && { payload: view.payload }
      cli.terminal.print(JSON.stringify({ ...withoutPayload(view, cli.clock.nowMs()), ...payload }))
    })
}

export function addSchedulePreview(schedules: Command, cli: Cli): void {
  schedules
    .command('preview')
    .summary('show the next runs of a schedule or cron expression')
    .description('Show the next runs of a stored schedule or of any cron expression.')
    .argument('<cron-or-name>', 'a cron expression in quotes, or the name of a schedule')
    .option('--tz <zone>', "the time zone, such as Europe/Berlin (default: the schedule's, or UTC)")
    .option('--count <n>', 'how many runs', wholeNumber, 10)
    .addHelpText(
      'after',
      examples([
        [`millrace schedules preview '0 3 * * MON' --tz Europe/Berlin`, 'check an expression'],
        ['millrace schedules preview nightly --count 3', 'of a stored schedule'],
      ]),
    )
    .action((of: string, _options, command: Command) => preview(cli, of, command.optsWithGlobals<PreviewFlags>()))
}

async function preview(cli: Cli, of: string, flags: PreviewFlags): Promise<void> {
  const { terminal, clock } = cli
  const nowMs = clock.nowMs()
  const { tz, count } = flags
  // An expression needs no store, so none has to exist.
  const runs = /\s/.test(of.trim())
    ? previewCron(parseCron(of, tz ?? 'UTC'), nowMs, count)
    : await withSchedules(cli, flags, (timetable) => timetable.preview(of, { count, ...omitUndefined({ tz }) }))
  if (flags.json) {
    for (const atMs of runs) terminal.print(JSON.stringify({ at: formatTime(atMs), inMs: atMs - nowMs }))
  } else if (runs.length === 0) terminal.print('It never runs again.')
  else for (const atMs of runs) terminal.print(`${formatTime(atMs)}  in ${formatDuration(atMs - nowMs)}`)
}
