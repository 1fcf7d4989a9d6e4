import { type Command, Option } from 'commander'
import { MISSED_POLICIES, OVERLAP_POLICIES, type ScheduleSpec } from '../../job/schedule.ts'
import { type Cli, duration, examples, type SharedOptions, wholeNumber, withStoredMill } from '../cli.ts'
import { parsePayload, parseTenant, parseTime } from '../given.ts'
import { loadJobs } from '../modules.ts'
import { tell } from './change.ts'
import { changeSchedule, flagsOf } from './timetable.ts'

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
