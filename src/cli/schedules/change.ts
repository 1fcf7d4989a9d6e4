import { type Command, Option } from 'commander'
import type { Mill } from '../../client/mill.ts'
import type { OperatorAction } from '../../engine/dead-letters.ts'
import type { Receipt } from '../../engine/engine.ts'
import { UnknownScheduleError } from '../../errors.ts'
import { omitUndefined } from '../../job/known-options.ts'
import { MISSED_POLICIES, OVERLAP_POLICIES, type ScheduleSpec } from '../../job/schedule.ts'
import { auditedFacts, type ScheduleView } from '../../keeper/schedule-state.ts'
import { duration, parsePayload, parseTenant, parseTime, wholeNumber } from '../arguments.ts'
import { audited, type Cli, examples, type SharedOptions, withStoredMill } from '../cli.ts'
import { formatTime } from '../format.ts'
import { loadJobs } from '../modules.ts'
import { printable } from '../terminal.ts'
import { withoutPayload, withSchedules } from './print.ts'

interface RescheduleFlags extends SharedOptions {
  readonly tz?: string
}

interface RemoveFlags extends SharedOptions {
  readonly dryRun?: true
}

function tell({ terminal, clock }: Cli, flags: SharedOptions, view: ScheduleView): void {
  const name = printable(view.name)
  if (flags.json) terminal.print(JSON.stringify(withoutPayload(view, clock.nowMs())))
  else if (view.paused) terminal.print(`${name} is paused`)
  else if (view.nextAtMs === null) terminal.print(`${name} never runs again`)
  else terminal.print(`${name} runs next at ${formatTime(view.nextAtMs)}`)
}

/** Changes a schedule and records it in the audit. */
async function changeSchedule(
  cli: Cli,
  mill: Mill,
  { name, action }: { readonly name: string; readonly action: OperatorAction },
  change: () => Promise<ScheduleView>,
): Promise<ScheduleView> {
  const before = await mill.schedules.find(name)
  const after = await change()
  await audited(cli, mill, {
    ...{ action, subject: name, type: after.type, after: auditedFacts(after) },
    ...(before !== null && { before: auditedFacts(before) }),
  })
  return after
}

export function addSchedulePause(schedules: Command, cli: Cli): void {
  schedules
    .command('pause')
    .summary('stop running a schedule until it is resumed')
    .description('Stop running a schedule until it is resumed. The pause survives restarts.')
    .argument('<name>', 'its name')
    .addHelpText('after', examples([['millrace schedules pause nightly', 'until it is resumed']]))
    .action(async (name: string, _options, command: Command) => {
      const flags = command.optsWithGlobals<SharedOptions>()
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
    .summary('run a paused schedule again')
    .description('Run a paused schedule again from its next tick. Ticks that were due during the pause do not run.')
    .argument('<name>', 'its name')
    .addHelpText('after', examples([['millrace schedules resume nightly', 'from its next tick']]))
    .action(async (name: string, _options, command: Command) => {
      const flags = command.optsWithGlobals<SharedOptions>()
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
    .summary('change when a schedule runs')
    .description('Change when a schedule runs, with the same payload and options. The change survives restarts.')
    .argument('<name>', 'its name')
    .argument('<cron>', 'the cron expression, in quotes')
    .option('--tz <zone>', 'another time zone, such as Europe/Berlin')
    .addHelpText(
      'after',
      examples([[`millrace schedules reschedule nightly '30 4 * * *'`, 'at half past four instead']]),
    )
    .action(async (name: string, cron: string, _options, command: Command) => {
      const flags = command.optsWithGlobals<RescheduleFlags>()
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
    .description('Enqueue a run of a schedule now and print its id. Its ticks do not change.')
    .argument('<name>', 'its name')
    .addHelpText('after', examples([['millrace schedules run nightly', 'works while it is paused, too']]))
    .action(async (name: string, _options, command: Command) => {
      const flags = command.optsWithGlobals<SharedOptions>()
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
    .summary('remove a schedule')
    .description('Remove a schedule. Jobs that it has enqueued stay.')
    .argument('<name>', 'its name')
    .option('--dry-run', 'only say what it would do')
    .addHelpText(
      'after',
      `${examples([['millrace schedules remove nightly --dry-run', 'check that it is the right one']])}

A schedule declared in code returns when that code starts again: pause it, or remove it from the code first.`,
    )
    .action((name: string, _options, command: Command) => remove(cli, name, command.optsWithGlobals<RemoveFlags>()))
}

async function remove(cli: Cli, name: string, flags: RemoveFlags): Promise<void> {
  const dryRun = flags.dryRun ?? false
  const view = await withSchedules(cli, flags, async (timetable, mill) => {
    const found = await timetable.find(name)
    if (found === null) throw new UnknownScheduleError(name)
    if (dryRun) return found
    await timetable.unschedule(name)
    const { type } = found
    await audited(cli, mill, { action: 'schedule-remove', subject: name, type, before: auditedFacts(found) })
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
  readonly tag?: readonly string[]
  readonly jobs?: readonly string[]
}

interface AddArguments {
  readonly name: string
  readonly type: string
  readonly cron: string
  readonly payload: string | undefined
}

export function addScheduleAdd(schedules: Command, cli: Cli): void {
  schedules
    .command('add')
    .summary('add or change a schedule')
    .description('Add a schedule, or change the one with that name and keep its run count.')
    .argument('<name>', 'its name')
    .argument('<type>', 'the type of its jobs')
    .argument('<cron>', 'minute hour day month weekday, or six fields with the second first, in quotes')
    .argument('[payload]', 'the payload of its jobs as JSON (default: null)')
    .option('--tz <zone>', 'the time zone, such as Europe/Berlin (default: UTC)')
    .option('--start <time>', 'no run before this time, such as 2030-01-31T09:00:00Z')
    .option('--end <time>', 'no run after this time')
    .option('--limit <n>', 'at most this many runs', wholeNumber)
    .addOption(new Option('--missed <policy>', 'what to do about missed ticks (default: one)').choices(MISSED_POLICIES))
    .addOption(
      new Option('--overlap <policy>', 'what to do while the previous run has not ended (default: skip)').choices(
        OVERLAP_POLICIES,
      ),
    )
    .option('--priority <n>', '1 (first) to 10 (last)', wholeNumber)
    .option('--attempts <n>', 'at most this many starts', wholeNumber)
    .option('--timeout <duration>', 'the time limit of one start', duration)
    .option('--tenant <org[/workspace]>', 'the tenant')
    .option('--tag <tags...>', 'what its jobs can be found by')
    .option('--jobs <modules...>', 'modules that define the type, to use its schema and defaults')
    .addHelpText('after', HELP)
    .action((name: string, type: string, cron: string, payload: string | undefined, _options, command: Command) =>
      add(cli, { name, type, cron, payload }, command.optsWithGlobals<AddFlags>()),
    )
}

const HELP = `${examples([
  [`millrace schedules add nightly report '0 3 * * *' --tz Europe/Berlin`, 'every night at three'],
  [`millrace schedules add probe ping '*/10 * * * * *' '{"host":"db"}'`, 'every ten seconds'],
  [`millrace schedules add bill invoice '0 6 1 * *' --missed all`, 'also for missed months'],
])}

A running keeper picks it up within its interval (default: 5 seconds).`

async function add(cli: Cli, args: AddArguments, flags: AddFlags): Promise<void> {
  const { name, type, cron, payload } = args
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
  const { tz, start, end, limit, missed, overlap, priority, attempts, timeout, tenant, tag: tags } = flags
  return {
    ...omitUndefined({
      tz,
      start: start === undefined ? undefined : parseTime(start, 'start'),
      end: end === undefined ? undefined : parseTime(end, 'end'),
      limit,
      missed,
      overlap,
    }),
    options: omitUndefined({
      priority,
      attempts,
      timeout,
      tenant: tenant === undefined ? undefined : parseTenant(tenant),
      tags,
    }),
  }
}
