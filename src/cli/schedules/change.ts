import type { Command } from 'commander'
import { UnknownScheduleError } from '../../errors.ts'
import type { ScheduleView } from '../../keeper/schedule.ts'
import { type Cli, examples, type SharedOptions } from '../cli.ts'
import { formatTime } from '../format.ts'
import { printable } from '../terminal.ts'
import { flagsOf, withoutPayload, withSchedules } from './timetable.ts'

interface RescheduleFlags extends SharedOptions {
  readonly tz?: string
}

interface RemoveFlags extends SharedOptions {
  readonly dryRun?: true
}

export function tell({ terminal, clock }: Cli, flags: SharedOptions, view: ScheduleView): void {
  const name = printable(view.name)
  if (flags.json) terminal.print(JSON.stringify(withoutPayload(view, clock.nowMs())))
  else if (view.paused) terminal.print(`${name} is paused`)
  else if (view.nextAtMs === null) terminal.print(`${name} never runs again`)
  else terminal.print(`${name} runs next at ${formatTime(view.nextAtMs)}`)
}

export function addSchedulePause(schedules: Command, cli: Cli): void {
  schedules
    .command('pause')
    .summary('let it run no more until it is resumed')
    .description('Let a schedule run no more until it is resumed, whatever restarts meanwhile.')
    .argument('<name>', 'its name')
    .addHelpText('after', examples([['millrace schedules pause nightly', 'for the time being']]))
    .action(async (name: string, _options, command: Command) => {
      const flags = flagsOf<SharedOptions>(command)
      tell(cli, flags, await withSchedules(cli, flags, (timetable) => timetable.pause(name)))
    })
}

export function addScheduleResume(schedules: Command, cli: Cli): void {
  schedules
    .command('resume')
    .summary('let it run again, from now on')
    .description('Let a paused schedule run again, from its next tick on. What was due meanwhile does not run.')
    .argument('<name>', 'its name')
    .addHelpText('after', examples([['millrace schedules resume nightly', 'from its next tick on']]))
    .action(async (name: string, _options, command: Command) => {
      const flags = flagsOf<SharedOptions>(command)
      tell(cli, flags, await withSchedules(cli, flags, (timetable) => timetable.resume(name)))
    })
}

export function addReschedule(schedules: Command, cli: Cli): void {
  schedules
    .command('reschedule')
    .summary('let it run at other times')
    .description('Let a schedule run at other times, with the same payload and options. It outlives restarts.')
    .argument('<name>', 'its name')
    .argument('<cron>', 'the cron text in quotes')
    .option('--tz <zone>', 'another time zone, such as Europe/Berlin')
    .addHelpText(
      'after',
      examples([[`millrace schedules reschedule nightly '30 4 * * *'`, 'at half past four instead']]),
    )
    .action(async (name: string, cron: string, _options, command: Command) => {
      const flags = flagsOf<RescheduleFlags>(command)
      const zone = flags.tz === undefined ? {} : { tz: flags.tz }
      tell(cli, flags, await withSchedules(cli, flags, (timetable) => timetable.reschedule(name, cron, zone)))
    })
}

export function addScheduleRun(schedules: Command, cli: Cli): void {
  schedules
    .command('run')
    .summary('enqueue a run now')
    .description('Enqueue a run of a schedule now and print its id. Its ticks stay as they are.')
    .argument('<name>', 'its name')
    .addHelpText('after', examples([['millrace schedules run nightly', 'also while it is paused']]))
    .action(async (name: string, _options, command: Command) => {
      const flags = flagsOf<SharedOptions>(command)
      const { id, status } = await withSchedules(cli, flags, (timetable) => timetable.runNow(name))
      cli.terminal.print(flags.json ? JSON.stringify({ id, name, status }) : `${id} ${status}`)
    })
}

export function addScheduleRemove(schedules: Command, cli: Cli): void {
  schedules
    .command('remove')
    .summary('forget a schedule')
    .description('Forget a schedule. Jobs that it has enqueued stay.')
    .argument('<name>', 'its name')
    .option('--dry-run', 'only say what it would do')
    .addHelpText(
      'after',
      `${examples([['millrace schedules remove nightly --dry-run', 'is it the right one?']])}

One that code declares comes back when that code starts again: pause it, or remove it from the code first.`,
    )
    .action((name: string, _options, command: Command) => remove(cli, name, flagsOf<RemoveFlags>(command)))
}

async function remove(cli: Cli, name: string, flags: RemoveFlags): Promise<void> {
  const dryRun = flags.dryRun ?? false
  const view = await withSchedules(cli, flags, async (timetable) => {
    const found = await timetable.find(name)
    if (found === null) throw new UnknownScheduleError(name)
    if (!dryRun) await timetable.unschedule(name)
    return found
  })
  if (flags.json) return cli.terminal.print(JSON.stringify({ name, removed: !dryRun, dryRun }))
  const what = `${printable(name)} (${printable(view.cron)}, ${view.runs} runs so far)`
  cli.terminal.print(dryRun ? `${what} would be removed; nothing was changed` : `${what} is removed`)
}
