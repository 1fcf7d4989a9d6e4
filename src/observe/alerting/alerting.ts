import type { Engine } from '../../engine/engine.ts'
import { OptionError } from '../../errors.ts'
import type { Events } from '../../events.ts'
import type { Log } from '../../job/definition.ts'
import { type OptionNames, refuseUnknown } from '../../job/known-options.ts'
import { type Clock, systemClock } from '../../time/clock.ts'
import { type Duration, parseDurationMs } from '../../time/duration.ts'
import { answerWithin } from '../deadline.ts'
import { errorText } from '../error-text.ts'
import { attachFigures, type KeyFigures } from '../figures/collect.ts'
import { silentLog } from '../log.ts'
import type { Watch } from '../watch/watch.ts'
import { type AlertNotice, type AlertState, Evaluator } from './evaluator.ts'
import type { AlertRule, Sample } from './rule.ts'
import { type SampleSources, takeSample } from './sample.ts'
import type { AlertSink } from './sinks.ts'

export interface AlertingOptions {
  readonly rules: readonly AlertRule[]
  /** Told of every alert that fires, fires still after `repeat`, or is resolved. */
  readonly sinks?: readonly AlertSink[]
  /** Between two looks; 5 min unless told. Document D's rules want 15 s. */
  readonly every?: Duration
  /** After how long an alert that still fires is told again; an hour unless told. */
  readonly repeat?: Duration
  /** How far back the key figures reach; an hour unless told, and at most. */
  readonly window?: Duration
  /** Figures that are attached already; its own unless told. */
  readonly figures?: KeyFigures
  /** What `checkHealth` is given. Presence is the engine's own unless told. */
  readonly health?: SampleSources['health']
  /** What document D's rules look at. */
  readonly watch?: Pick<Watch, 'read'>
  /** Told of sinks and rules that fail, and of figures that cannot be read. */
  readonly log?: Log
  readonly clock?: Clock
}

const ALERTING_NAMES: OptionNames<AlertingOptions> = {
  rules: true,
  sinks: true,
  every: true,
  repeat: true,
  window: true,
  figures: true,
  health: true,
  watch: true,
  log: true,
  clock: true,
}

export interface Alerting {
  /** Alerts that are pending or fire, oldest first, then the last hundred that were resolved. */
  current(): readonly AlertState[]
  /** Looks now, and answers what was told. */
  look(): Promise<readonly AlertNotice[]>
  /** Ends it, and resolves when what was being sent has arrived or taken too long. Stop it before the mill is closed. */
  stop(): Promise<void>
}

/** Longer than a webhook's two tries. */
const SEND_MS = 15_000

/**
 * Looks at a mill again and again and tells what is wrong, once when it begins, once an hour while it lasts, and once
 * when it is over. One process of all that share a store is enough. Attach it before workers start.
 *
 * @example
 * const alerting = startAlerting(mill, {
 *   rules: [...healthRules(), ...figureRules()],
 *   sinks: [logSink(log), webhookSink('https://hooks.example.com/alerts')],
 * })
 */
export function startAlerting(
  mill: { readonly events: Events; readonly engine: Engine },
  options: AlertingOptions,
): Alerting {
  refuseUnknown(options, ALERTING_NAMES, 'startAlerting')
  return new Looking(mill.events, mill.engine, options)
}

class Looking implements Alerting {
  readonly #events: Events
  readonly #sources: SampleSources
  readonly #figures: KeyFigures
  readonly #ownsFigures: boolean
  readonly #evaluator: Evaluator
  readonly #sinks: readonly AlertSink[]
  readonly #everyMs: number
  readonly #log: Log
  readonly #clock: Clock
  readonly #sending = new Set<Promise<void>>()
  #underWay: Promise<readonly AlertNotice[]> | null = null
  #cancelNext: () => void = () => {}
  #isStopped = false
  #isTroubled = false

  constructor(events: Events, engine: Engine, options: AlertingOptions) {
    const clock = options.clock ?? systemClock
    checkNames(options.rules)
    this.#events = events
    this.#clock = clock
    this.#log = options.log ?? silentLog
    this.#sinks = options.sinks ?? []
    this.#everyMs = parseDurationMs(options.every ?? '5m', 'every')
    if (this.#everyMs < 1) throw new OptionError(`'every' is ${this.#everyMs} ms; give at least 1 ms`)
    this.#ownsFigures = options.figures === undefined
    this.#figures = options.figures ?? attachFigures({ events, engine }, { clock })
    const windowMs = parseDurationMs(options.window ?? '1h', 'window')
    // Also says now, and not at the first look, that the window is too long.
    this.#figures.endedByType(windowMs)
    const { watch = null, health = {} } = options
    this.#sources = { engine, figures: this.#figures, health, watch, windowMs, clock }
    this.#evaluator = new Evaluator(options.rules, parseDurationMs(options.repeat ?? '1h', 'repeat'), (rule, error) =>
      this.#log.error('An alert rule failed', { alert: rule.name, error: errorText(error) }),
    )
    this.#arm()
  }

  current(): readonly AlertState[] {
    return this.#evaluator.current()
  }

  look(): Promise<readonly AlertNotice[]> {
    this.#underWay ??= this.#look().finally(() => {
      this.#underWay = null
    })
    return this.#underWay
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    this.#cancelNext()
    if (this.#ownsFigures) this.#figures.detach()
    await this.#underWay?.catch(() => {})
    await Promise.all(this.#sending)
  }

  #arm(): void {
    if (this.#isStopped) return
    this.#cancelNext = this.#clock.after(this.#everyMs, () => {
      this.look()
        .catch((error) => this.#log.error('Alerts could not be looked at', { error: errorText(error) }))
        .finally(() => this.#arm())
    })
  }

  async #look(): Promise<readonly AlertNotice[]> {
    const sample = await takeSample(this.#sources)
    this.#noteTrouble(sample)
    // Whoever has stopped it hears nothing more.
    const notices = this.#isStopped ? [] : this.#evaluator.step(sample)
    for (const notice of notices) this.#tell(notice)
    return notices
  }

  /** Rules over figures that cannot be read say nothing; that is logged once, not at every look. */
  #noteTrouble({ figures }: Sample): void {
    if (!figures.ok && !this.#isTroubled) this.#log.error('The key figures cannot be read', { error: figures.error })
    this.#isTroubled = !figures.ok
  }

  #tell(notice: AlertNotice): void {
    const { alert, status, repeated } = notice
    if (!repeated) this.#events.emit(status === 'firing' ? 'alert.firing' : 'alert.resolved', { alert })
    for (const sink of this.#sinks) {
      const sending = this.#send(sink, notice)
      this.#sending.add(sending)
      void sending.finally(() => this.#sending.delete(sending))
    }
  }

  async #send(sink: AlertSink, notice: AlertNotice): Promise<void> {
    try {
      await answerWithin(this.#clock, SEND_MS, 'telling an alert', () => sink(notice))
    } catch (error) {
      this.#log.error('An alert could not be told', { alert: notice.alert.rule, error: errorText(error) })
    }
  }
}

function checkNames(rules: readonly AlertRule[]): void {
  const seen = new Set<string>()
  for (const { name, for: held } of rules) {
    if (seen.has(name)) throw new OptionError(`two alert rules are called '${name}'; give each a name of its own`)
    parseDurationMs(held ?? 0, `for of ${name}`)
    seen.add(name)
  }
}
