import type { Command } from 'commander'
import { type Cli, examples } from '../cli.ts'
import { addScheduleAdd } from '../schedules/add.ts'
import {
  addReschedule,
  addSchedulePause,
  addScheduleRemove,
  addScheduleResume,
  addScheduleRun,
} from '../schedules/change.ts'
import { addScheduleList, addSchedulePreview, addScheduleShow } from '../schedules/look.ts'

export function addSchedules(program: Command, cli: Cli): void {
  const schedules = program
    .command('schedules')
    .summary('list, add, pause, reschedule or run schedules')
    .description('Look at schedules and change them. They are stored, so a change outlives every restart.')
    .addHelpText(
      'after',
      examples([
        ['millrace schedules', 'all of them, and which are overdue'],
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
