import { Leadership } from '../engine/leadership.ts'
import { OptionError } from '../errors.ts'
import type { AnyJob } from '../job/definition.ts'
import { type OptionNames, refuseUnknown } from '../job/known-options.ts'
import { type Duration, parseDurationMs } from '../time/duration.ts'
import { clockWatch } from './clock-watch.ts'
import { declareSchedules } from './declared-schedules.ts'
import { reapDuty, retentionDuty, schedulesDuty } from './duties.ts'
import { historyDuty } from './history.ts'
import type { Duty, LeadershipTerm } from './leader-election.ts'
import { LeaderElection } from './leader-election.ts'
import type { KeeperParts } from './parts.ts'
import { checkPolicy, type RetentionPolicy } from './retention.ts'
import type { NamedSchedule } from './timetable.ts'

export interface KeeperOptions {
  /**
   * Another keeper takes over within twice this when the active one ends, and schedules added by other processes are
   * seen after it at most. Default: 5s, or `reap` if that is shorter.
   */
  readonly interval?: Duration
  /** How often expired leases of dead workers are looked for. Default: 30s; false leaves it to others. */
  readonly reap?: Duration | false
  /** Definitions: their schedules are stored, and jobs are prepared and recovered by them. */
  readonly jobs?: readonly AnyJob[]
  /** More schedules to store, of any type. */
  readonly schedules?: readonly NamedSchedule[]
  /** How long finished jobs stay; completed ones for 7 days by default. False leaves tidying up to others. */
  readonly retention?: RetentionPolicy | false
  /** Default: `hostname:pid:suffix`. */
  readonly id?: string
}

const KEEPER_NAMES: OptionNames<KeeperOptions> = {
  interval: true,
  reap: true,
  jobs: true,
  schedules: true,
  retention: true,
  id: true,
}

/** Runs what is due on the clock: reaping, schedules, retention and the history. */
export interface Keeper {
  readonly id: string
  /** Whether this is the keeper that works now; the others wait to take over. */
  readonly leads: boolean
  /** Ends what it does, and lets another keeper take over. Stored schedules stay. It never rejects. */
  stop(cause?: string): Promise<void>
  /** Resolves when it has stopped. */
  readonly stopped: Promise<void>
}

const INTERVAL_MS_MIN = 20
const INTERVAL_MS_DEFAULT = 5_000
const INTERVAL_MS_LEAST = 250
/** How long a stop waits for a pass under way and for leadership to be given up. */
const STOP_MS = 5_000

/** Stores the declared schedules, then begins to campaign. */
export async function startKeeper(parts: KeeperParts, id: string, options: KeeperOptions): Promise<Keeper> {
  refuseUnknown(options, KEEPER_NAMES, 'keep')
  const reapMs = checkReapMs(options.reap)
  const intervalMs = parseDurationMs(options.interval ?? intervalFor(reapMs), 'interval')
  if (intervalMs < INTERVAL_MS_MIN) {
    throw new OptionError(`'interval' is ${intervalMs} ms; give at least ${INTERVAL_MS_MIN} ms`)
  }
  const { retention = {} } = options
  if (retention !== false) checkPolicy(retention)
  const names = await declareSchedules(parts, options.schedules ?? [])
  const duties = dutiesOf(parts, { id, intervalMs, reapMs, retention })
  return new StartedKeeper(parts, { id, intervalMs, names, duties })
}

/** A short `reap` needs a takeover that is as quick. */
function intervalFor(reapMs: number | null): number {
  return Math.max(INTERVAL_MS_LEAST, Math.min(INTERVAL_MS_DEFAULT, reapMs ?? INTERVAL_MS_DEFAULT))
}

/** Null for never. */
export function checkReapMs(reap: Duration | false = '30s'): number | null {
  if (reap === false) return null
  const reapMs = parseDurationMs(reap, 'reap')
  if (reapMs >= 1) return reapMs
  throw new OptionError(`'reap' is ${reapMs} ms; give at least 1 ms, or false`)
}

/** What the engine has no facet for is left out. */
function dutiesOf(parts: KeeperParts, { id, intervalMs, reapMs, retention }: Settings): readonly Duty[] {
  const { engine, prepare } = parts
  const { capabilities } = engine
  const duties: Duty[] = []
  if (capabilities.recovery === 'reaper' && reapMs !== null) duties.push(reapDuty(parts, id, reapMs))
  if (engine.records !== undefined && prepare !== null)
    duties.push(schedulesDuty({ ...parts, prepare }, id, intervalMs))
  if (engine.retention !== undefined && retention !== false) duties.push(retentionDuty(parts, retention))
  if (engine.records !== undefined) duties.push(historyDuty(parts, id, engine.records))
  return duties
}

interface Settings {
  readonly id: string
  readonly intervalMs: number
  readonly reapMs: number | null
  readonly retention: RetentionPolicy | false
}

interface Started {
  readonly id: string
  readonly intervalMs: number
  /** The schedules declared here. */
  readonly names: readonly string[]
  readonly duties: readonly Duty[]
}

class StartedKeeper implements Keeper {
  readonly id: string
  readonly stopped: Promise<void>
  readonly #parts: KeeperParts
  readonly #started: Started
  readonly #election: LeaderElection
  readonly #stop = new AbortController()
  /** The duties of this and of former terms; a new term begins when the old one's acts have ended. */
  #work: Promise<unknown> = Promise.resolve()

  constructor(parts: KeeperParts, started: Started) {
    const { id, intervalMs, duties } = started
    this.id = id
    this.#parts = parts
    this.#started = started
    this.#election = new LeaderElection({
      // A keeper that leaves something out must not keep one away that does everything.
      name: `keeper:${duties.map(({ name }) => name).join('+')}`,
      holder: id,
      intervalMs,
      leadership: parts.engine.records === undefined ? null : new Leadership(parts.engine.records),
      clock: parts.clock,
      onLook: clockWatch(parts.clock, parts.events),
      onTaken: (term, number) => this.#begin(term, number),
      onLost: () => parts.events.emit('keeper.waiting', { keeper: id }),
      onError: (error) => this.#report('campaign', error),
    })
    parts.events.emit('keeper.started', { keeper: id, duties: duties.map(({ name }) => name) })
    this.stopped = this.#run()
  }

  get leads(): boolean {
    return this.#election.isHeld
  }

  /** A store that does not answer is not waited for: what the keeper holds runs out by itself. */
  async stop(): Promise<void> {
    this.#stop.abort()
    const over = new AbortController()
    await Promise.race([this.stopped, this.#parts.clock.sleep(STOP_MS, over.signal)])
    over.abort()
  }

  async #run(): Promise<void> {
    if (this.#started.duties.length > 0) await this.#election.keep(this.#stop.signal)
    await this.#work
    await this.#election.resign().catch((error: unknown) => this.#report('resign', error))
    this.#parts.events.emit('keeper.stopped', { keeper: this.id, schedules: this.#started.names })
  }

  #begin(term: LeadershipTerm, number: number): void {
    this.#parts.events.emit('keeper.leading', { keeper: this.id, term: number })
    const before = this.#work
    this.#work = Promise.all([before, ...this.#started.duties.map((duty) => this.#tend(duty, term, before))])
  }

  /** Again and again until leadership is lost. A duty that fails is reported and tried again. */
  async #tend(duty: Duty, term: LeadershipTerm, before: Promise<unknown>): Promise<void> {
    const { clock } = this.#parts
    await before
    let alarm = new AbortController()
    const unsubscribe = duty.onChange?.(() => alarm.abort())
    while (await term.holds()) {
      alarm = new AbortController()
      const waitMs = await this.#perform(duty, term)
      await clock.sleep(waitMs, AbortSignal.any([term.signal, alarm.signal]))
    }
    unsubscribe?.()
  }

  async #perform(duty: Duty, term: LeadershipTerm): Promise<number> {
    try {
      return await duty.perform(term)
    } catch (error) {
      this.#report(duty.name, error)
      return this.#started.intervalMs
    }
  }

  #report(during: string, error: unknown): void {
    this.#parts.events.emit('keeper.error', { keeper: this.id, during, error })
  }
}
