import { addMarks } from '../../engine/history/marks.ts'
import { OptionError } from '../../errors.ts'
import type { Events } from '../../events.ts'
import type { Log } from '../../job/definition.ts'
import { errorText } from '../../job/error-record.ts'
import { type OptionNames, refuseUnknown } from '../../job/known-options.ts'
import { type Clock, systemClock } from '../../time/clock.ts'
import { type Duration, parseDurationMs } from '../../time/duration.ts'
import { within } from '../../time/wait.ts'
import { checkHealth, type HealthOptions, workersOf } from '../health.ts'
import { silentLog } from '../log.ts'
import type { ObservedMill } from '../observed-mill.ts'
import { findWithin } from '../observed-mill.ts'
import { attachStats, type StatsCollector } from '../stats/stats.ts'
import { type AlertNotice, type AlertState, Evaluator } from './evaluator.ts'
import type { AlertRule, Sample } from './rule.ts'
import type { AlertSink } from './sinks.ts'

export interface AlertingOptions<Reading = unknown> {
  readonly rules: readonly AlertRule<Reading>[]
  /** Notified when an alert fires, still fires after `repeat`, or is resolved. */
  readonly sinks?: readonly AlertSink[]
  /** Between two evaluations; default: 5m. */
  readonly every?: Duration
  /** When an alert that still fires is sent again; default: 1h. */
  readonly repeat?: Duration
  /** The window of the stats; default and maximum: 1h. */
  readonly window?: Duration
  /** Stats that are already attached; default: new ones. */
  readonly stats?: StatsCollector
  /** Options of `checkHealth`; the presence defaults to the engine's. */
  readonly health?: SampleSources<Reading>['health']
  /** Read before each evaluation. The rules find the result in `sample.reading`. */
  readonly watch?: { read(): Promise<Reading> }
  /** For sinks and rules that fail, and stats that cannot be read. */
  readonly log?: Log
  readonly clock?: Clock
}

const ALERTING_NAMES: OptionNames<AlertingOptions> = {
  rules: true,
  sinks: true,
  every: true,
  repeat: true,
  window: true,
  stats: true,
  health: true,
  watch: true,
  log: true,
  clock: true,
}

export interface Alerting {
  /** Pending and firing alerts, oldest first, then the last hundred resolved ones. */
  current(): readonly AlertState[]
  /** Evaluates the rules now and returns the notices sent. */
  evaluate(): Promise<readonly AlertNotice[]>
  /** Resolves when notices under way have been sent or timed out. Call it before you close the mill. */
  stop(): Promise<void>
}

/** A mill, or several joined. */
type AlertedMill = ObservedMill<'ping' | 'counts' | 'inspector' | 'records' | 'workers'>

const MINUTE_MS = 60_000
/** Longer than the two attempts of a webhook. */
const SEND_MS = 15_000

/**
 * Evaluates rules over a mill at an interval and notifies sinks: when an alert fires, once an hour while it lasts, and
 * when it is resolved. One process per store is enough. Attach it before workers start.
 *
 * @example
 * const alerting = startAlerting(mill, {
 *   rules: healthRules(),
 *   sinks: [logSink(log), webhookSink('https://hooks.example.com/alerts')],
 * })
 */
export function startAlerting<Reading = unknown>(mill: AlertedMill, options: AlertingOptions<Reading>): Alerting {
  refuseUnknown(options, ALERTING_NAMES, 'startAlerting')
  return new AlertLoop(mill, options)
}

class AlertLoop<Reading> implements Alerting {
  readonly #events: Events
  readonly #sources: SampleSources<Reading>
  readonly #ownsStats: boolean
  readonly #evaluator: Evaluator<Reading>
  readonly #sinks: readonly AlertSink[]
  readonly #everyMs: number
  readonly #log: Log
  readonly #clock: Clock
  readonly #sending = new Set<Promise<void>>()
  #underWay: Promise<readonly AlertNotice[]> | null = null
  #cancelNext: () => void = () => {}
  #isStopped = false
  #isUnreadable = false

  constructor({ events, engine }: AlertedMill, options: AlertingOptions<Reading>) {
    const clock = options.clock ?? systemClock
    checkNames(options.rules)
    this.#events = events
    this.#clock = clock
    this.#log = options.log ?? silentLog
    this.#sinks = options.sinks ?? []
    this.#everyMs = parseDurationMs(options.every ?? '5m', 'every')
    if (this.#everyMs < 1) throw new OptionError(`'every' is ${this.#everyMs} ms; give at least 1 ms`)
    this.#ownsStats = options.stats === undefined
    const stats = options.stats ?? attachStats({ events, engine }, { clock })
    const windowMs = parseDurationMs(options.window ?? '1h', 'window')
    // Rejects a window that is too long now, not at the first evaluation.
    stats.endedByType(windowMs)
    const { watch = null, health = {} } = options
    this.#sources = { engine, stats, health, watch, windowMs, clock }
    this.#evaluator = new Evaluator(options.rules, parseDurationMs(options.repeat ?? '1h', 'repeat'), (rule, error) =>
      this.#log.error('An alert rule failed', { alert: rule.name, error: errorText(error) }),
    )
    this.#arm()
  }

  current(): readonly AlertState[] {
    return this.#evaluator.current()
  }

  evaluate(): Promise<readonly AlertNotice[]> {
    this.#underWay ??= this.#evaluate().finally(() => {
      this.#underWay = null
    })
    return this.#underWay
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    this.#cancelNext()
    if (this.#ownsStats) this.#sources.stats.detach()
    await this.#underWay?.catch(() => {})
    await Promise.all(this.#sending)
  }

  #arm(): void {
    if (this.#isStopped) return
    this.#cancelNext = this.#clock.after(this.#everyMs, () => {
      this.evaluate()
        .catch((error) => this.#log.error('Alerts could not be evaluated', { error: errorText(error) }))
        .finally(() => this.#arm())
    })
  }

  async #evaluate(): Promise<readonly AlertNotice[]> {
    const sample = await takeSample(this.#sources)
    this.#logUnreadable(sample)
    // Nothing is sent after `stop`.
    const notices = this.#isStopped ? [] : this.#evaluator.step(sample)
    for (const notice of notices) this.#notify(notice)
    return notices
  }

  /** Logged once, not at every evaluation. */
  #logUnreadable({ stats }: Sample): void {
    if (!stats.ok && !this.#isUnreadable) this.#log.error('The stats cannot be read', { error: stats.error })
    this.#isUnreadable = !stats.ok
  }

  #notify(notice: AlertNotice): void {
    const { alert, status, repeated } = notice
    if (!repeated) {
      this.#events.emit(status === 'firing' ? 'alert.firing' : 'alert.resolved', { alert })
      this.#follow(this.#mark(notice))
    }
    for (const sink of this.#sinks) {
      this.#follow(this.#send(sink, notice))
    }
  }

  #follow(sending: Promise<void>): void {
    this.#sending.add(sending)
    void sending.finally(() => this.#sending.delete(sending))
  }

  /** For the charts. Another process that evaluates the same rules within the minute adds none. */
  async #mark({ alert, status }: AlertNotice): Promise<void> {
    const { records } = this.#sources.engine
    const { rule, labels, text, firedAtMs, resolvedAtMs } = alert
    const isOver = status === 'resolved'
    const atMs = (isOver ? resolvedAtMs : firedAtMs) ?? this.#clock.nowMs()
    const kind = isOver ? 'resolved' : 'alert'
    const key = JSON.stringify([kind, rule, Object.entries(labels).toSorted(), Math.floor(atMs / MINUTE_MS)])
    const mark = {
      atMs,
      kind,
      key,
      type: labels.type ?? null,
      text: isOver ? `${rule} resolved` : `${rule}: ${text}`,
    } as const
    try {
      if (records !== undefined) await within(this.#clock, SEND_MS, 'marking an alert', () => addMarks(records, [mark]))
    } catch (error) {
      this.#log.warn('An alert could not be marked in the history', { alert: rule, error: errorText(error) })
    }
  }

  async #send(sink: AlertSink, notice: AlertNotice): Promise<void> {
    try {
      await within(this.#clock, SEND_MS, 'sending an alert', () => sink(notice))
    } catch (error) {
      this.#log.error('An alert could not be sent', { alert: notice.alert.rule, error: errorText(error) })
    }
  }
}

function checkNames(rules: readonly Pick<AlertRule, 'name' | 'for'>[]): void {
  const seen = new Set<string>()
  for (const { name, for: held } of rules) {
    if (seen.has(name)) throw new OptionError(`two alert rules are called '${name}'; names must be unique`)
    parseDurationMs(held ?? 0, `for of ${name}`)
    seen.add(name)
  }
}

interface SampleSources<Reading> {
  readonly engine: AlertedMill['engine']
  readonly stats: StatsCollector
  readonly health: Omit<HealthOptions, 'presence' | 'clock'> & Partial<Pick<HealthOptions, 'presence'>>
  readonly watch: { read(): Promise<Reading> } | null
  readonly windowMs: number
  readonly clock: Clock
}

/** Each part is read for at most a second. */
async function takeSample<Reading>(sources: SampleSources<Reading>): Promise<Sample<Reading>> {
  const { engine, stats, watch, windowMs, clock } = sources
  const options = { ...workersOf(engine, clock), ...sources.health, clock }
  const [found, health, reading] = await Promise.all([
    findWithin(clock, 'the stats', () => stats.collect(windowMs)),
    checkHealth({ engine }, options),
    watch?.read() ?? null,
  ])
  return { atMs: clock.nowMs(), stats: found, health, reading }
}
