import type { Mill } from '../../src/client/mill.ts'
import { OptionError } from '../../src/errors.ts'
import type { AnyJob, Log } from '../../src/job/definition.ts'
import { type OptionNames, refuseUnknown } from '../../src/job/known-options.ts'
import type { Keeper } from '../../src/keeper/keeper.ts'
import type { NamedSchedule } from '../../src/keeper/timetable.ts'
import { silentLog } from '../../src/observe/log.ts'
import type { Duration } from '../../src/time/duration.ts'
import { type Handled, targetOf, targetsOf } from './handled.ts'
import { SCHEDULED_JOBS, type ScheduledJob, toSchedule } from './schedules.ts'

export interface SchedulerOptions {
  /** Default: the five of `SCHEDULED_JOBS`. */
  readonly schedules?: readonly ScheduledJob[]
  /** The types that are scheduled, as names, definitions or workers: their jobs get the options of these. Default: the type's own. */
  readonly handled?: readonly Handled[]
  /** Gets a line for each schedule that starts and stops. Default: nowhere. */
  readonly log?: Log
  /** How often the keeper looks. Default: 5s. */
  readonly interval?: Duration
}

const NAMES: OptionNames<SchedulerOptions> = { schedules: true, handled: true, log: true, interval: true }

/**
 * The framework's scheduler over a keeper. Schedules are stored under their names, so two schedulers enqueue a tick once, and
 * what `reschedule` changes stays over restarts.
 *
 * @example
 * const scheduler = new WorkerScheduler(mill, { handled: [new SessionCleanup()] })
 * await scheduler.start()
 * await scheduler.reschedule('session-cleanup', '0 0 * * * *')
 */
export class WorkerScheduler {
  readonly #mill: Mill
  readonly #schedules: readonly NamedSchedule[]
  readonly #jobs: readonly AnyJob[]
  readonly #log: Log
  readonly #interval: Duration | undefined
  #starting: Promise<Keeper> | null = null

  constructor(mill: Mill, options: SchedulerOptions = {}) {
    refuseUnknown(options, NAMES, 'WorkerScheduler')
    const { schedules = SCHEDULED_JOBS, handled = [], log = silentLog, interval } = options
    const targets = targetsOf(handled)
    const planned = schedules.map((job) => {
      const { definition, name } = targets.get(job.jobType) ?? targetOf(job.jobType)
      const named = name === undefined ? {} : { options: { name } }
      return { definition, schedule: { ...toSchedule(job), type: definition.type, ...named } }
    })
    this.#mill = mill
    this.#schedules = planned.map(({ schedule }) => schedule)
    this.#jobs = [...new Map(planned.map(({ definition }) => [definition.type, definition])).values()]
    this.#log = log
    this.#interval = interval
    if (new Set(schedules.map(({ name }) => name)).size < schedules.length) {
      throw new OptionError('two schedules have one name; give each its own')
    }
  }

  /** Stores the schedules and enqueues their ticks from now on. A second call changes nothing. */
  async start(): Promise<void> {
    if (this.#starting !== null) {
      await this.#starting
      return
    }
    const interval = this.#interval === undefined ? {} : { interval: this.#interval }
    this.#starting = this.#mill.keep({ schedules: this.#schedules, jobs: this.#jobs, ...interval })
    try {
      await this.#starting
    } catch (error) {
      this.#starting = null
      throw error
    }
    for (const { name, cron } of this.#schedules) {
      // As it is stored: somebody may have rescheduled it before a restart.
      const stored = await this.#mill.schedules.find(name)
      this.#log.info(`Scheduled ${name}: ${stored?.cron ?? cron}`, { schedule: name })
    }
  }

  /**
   * Stops this scheduler. The schedules stay stored: other schedulers, and the keepers of workers, go on with them. `unschedule`
   * removes one for all.
   */
  async stop(): Promise<void> {
    const starting = this.#starting
    if (starting === null) return
    this.#starting = null
    await (await starting).stop()
    for (const { name } of this.#schedules) this.#log.info(`Unscheduled ${name}`, { schedule: name })
  }

  /** Changes the times of a schedule for every process, and keeps them over restarts. Data and options stay the same. */
  async reschedule(name: string, cron: string): Promise<void> {
    await this.#mill.schedules.reschedule(name, cron)
    this.#log.info(`Scheduled ${name}: ${cron}`, { schedule: name })
  }

  /** Removes a schedule for every process. The next `start` stores it again. False if there is none. */
  async unschedule(name: string): Promise<boolean> {
    const isRemoved = await this.#mill.schedules.unschedule(name)
    if (isRemoved) this.#log.info(`Unscheduled ${name}`, { schedule: name })
    return isRemoved
  }
}
