import { type Command, Option } from 'commander'
import type { Receipt } from '../../engine/engine.ts'
import { UnknownScheduleError } from '../../errors.ts'
import { MISSED_POLICIES, OVERLAP_POLICIES, type ScheduleSpec } from '../../job/schedule.ts'
import type { ScheduleView } from '../../keeper/schedule-state.ts'
import { duration, parsePayload, parseTenant, parseTime, wholeNumber } from '../arguments.ts'
import { audited, type Cli, examples, type SharedOptions, withStoredMill } from '../cli.ts'
import { formatTime } from '../format.ts'
import { loadJobs } from '../modules.ts'
import { printable } from '../terminal.ts'
import { changeSchedule, flagsOf, timesOf, withoutPayload, withSchedules } from './print.ts'

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
      const act = { name, action: 'schedule-pause' } as const
      const view = await withSchedules(cli, flags, (timetable, mill) =>
        changeSchedule(cli, mill, act, () => timetable.pause(name)),
      )
      tell(cli, flags, view)
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
      const act = { name, action: 'schedule-resume' } as const
      const view = await withSchedules(cli, flags, (timetable, mill) =>
        changeSchedule(cli, mill, act, () => timetable.resume(name)),
      )
      tell(cli, flags, view)
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
      const act = { name, action: 'schedule-change' } as const
      const view = await withSchedules(cli, flags, (timetable, mill) =>
        changeSchedule(cli, mill, act, () => timetable.reschedule(name, cron, zone)),
      )
      tell(cli, flags, view)
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
      const { id, status } = await runNow(cli, name, flags)
      cli.terminal.print(flags.json ? JSON.stringify({ id, name, status }) : `${id} ${status}`)
    })
}

function runNow(cli: Cli, name: string, flags: SharedOptions): Promise<Receipt> {
  return withSchedules(cli, flags, async (timetable, mill) => {
    const receipt = await timetable.runNow(name)
    await audited(cli, mill, { action: 'schedule-run', subject: name, jobId: receipt.id, after: { ...receipt } })
    return receipt
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
  const view = await withSchedules(cli, flags, async (timetable, mill) => {
    const found = await timetable.find(name)
    if (found === null) throw new UnknownScheduleError(name)
    if (dryRun) return found
    await timetable.unschedule(name)
    const { type } = found
    await audited(cli, mill, { action: 'schedule-remove', subject: name, type, before: timesOf(found) })
    return found
  })
  if (flags.json) return cli.terminal.print(JSON.stringify({ name, removed: !dryRun, dryRun }))
  const what = `${printable(name)} (${printable(view.cron)}, ${view.runs} runs so far)`
  cli.terminal.print(dryRun ? `${what} would be removed; nothing was changed` : `${what} is removed`)
}

interface AddFlags extends SharedOptions {
  readonly tz?: string
  readonly start?: string
  readonly end?: string
  readonly limit?: number
  readonly missed?: (typeof MISSED_POLICIES)[number]
  readonly overlap?: (typeof OVERLAP_POLICIES)[number]
  readonly priority?: number
  readonly attempts?: number
  readonly timeout?: number
  readonly tenant?: string
  readonly jobs?: readonly string[]
}

interface Given {
  readonly name: string
  readonly type: string
  readonly cron: string
  readonly payload: string | undefined
}

export function addScheduleAdd(schedules: Command, cli: Cli): void {
  schedules
    .command('add')
    .summary('add a schedule, or change the one of that name')
    .description('Add a schedule, or change the one of that name; how often it ran is kept.')
    .argument('<name>', 'its name')
    .argument('<type>', 'the type of its jobs')
    .argument('<cron>', 'minute hour day month weekday, or six fields with the second first, in quotes')
    .argument('[payload]', 'the payload of its jobs as JSON; null unless told')
    .option('--tz <zone>', 'the time zone, such as Europe/Berlin; UTC unless told')
    .option('--start <time>', 'no run before, such as 2030-01-31T09:00:00Z')
    .option('--end <time>', 'no run after')
    .option('--limit <n>', 'how many runs at most', wholeNumber)
    .addOption(
      new Option('--missed <policy>', 'ticks that no keeper ran in time; one unless told').choices(MISSED_POLICIES),
    )
    .addOption(
      new Option('--overlap <policy>', 'while the run before has not ended; skip unless told').choices(
        OVERLAP_POLICIES,
      ),
    )
    .option('--priority <n>', '1 (first) to 10 (last)', wholeNumber)
    .option('--attempts <n>', 'how many starts at most', wholeNumber)
    .option('--timeout <duration>', 'how long one start may take', duration)
    .option('--tenant <org[/workspace]>', 'whose work it is')
    .option('--jobs <modules...>', 'modules that define the type: its schema and defaults are then used')
    .addHelpText('after', HELP)
    .action((name: string, type: string, cron: string, payload: string | undefined, _options, command: Command) =>
      add(cli, { name, type, cron, payload }, flagsOf<AddFlags>(command)),
    )
}

const HELP = `${examples([
  [`millrace schedules add nightly report '0 3 * * *' --tz Europe/Berlin`, 'every night at three'],
  [`millrace schedules add probe ping '*/10 * * * * *' '{"host":"db"}'`, 'every ten seconds'],
  [`millrace schedules add bill invoice '0 6 1 * *' --missed all`, 'also for months in which nothing ran'],
])}

A running keeper takes it over within its interval, 5 seconds unless told.`

async function add(cli: Cli, given: Given, flags: AddFlags): Promise<void> {
  const { name, type, cron, payload } = given
  const jobs = flags.jobs === undefined ? [] : await loadJobs(flags.jobs)
  const spec = { ...toSpec(flags), type, cron, ...(payload !== undefined && { payload: parsePayload(payload) }) }
  const options = { clock: cli.clock, jobs }
  const act = { name, action: 'schedule-change' } as const
  const view = await withStoredMill(flags.engine, options, (mill) =>
    changeSchedule(cli, mill, act, () => mill.schedules.upsert(name, spec)),
  )
  tell(cli, flags, view)
}

function toSpec(flags: AddFlags): Omit<ScheduleSpec, 'cron'> {
  const { tz, start, end, limit, missed, overlap, priority, attempts, timeout, tenant } = flags
  return {
    ...(tz !== undefined && { tz }),
    ...(start !== undefined && { start: parseTime(start, 'start') }),
    ...(end !== undefined && { end: parseTime(end, 'end') }),
    ...(limit !== undefined && { limit }),
    ...(missed !== undefined && { missed }),
    ...(overlap !== undefined && { overlap }),
    options: {
      ...(priority !== undefined && { priority }),
      ...(attempts !== undefined && { attempts }),
      ...(timeout !== undefined && { timeout }),
      ...(tenant !== undefined && { tenant: parseTenant(tenant) }),
    },
  }
}
