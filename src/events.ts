/**
 * Everything observable is one of these events. Logs, metrics and alerts only listen. Events carry ids and sizes, never
 * payloads. Their names are stable.
 */
import type { DeskAction } from './engine/dead-letters.ts'
import type { LostReason, Outcome } from './engine/outcome.ts'
import type { StoredJob } from './job/job.ts'

/** A job without its payload. */
export type JobFacts = Pick<StoredJob, 'id' | 'type' | 'priority' | 'attempts' | 'tenant' | 'runAtMs' | 'createdAtMs'> &
  Partial<Pick<StoredJob, 'options'>>

/** The one scale of alerts, alarms and conditions, mildest first. */
export type Severity = 'info' | 'warning' | 'error' | 'critical'

/** What is wrong, how bad it is, and since when. */
export interface Alert {
  /** The name of the rule that raises it. */
  readonly rule: string
  readonly severity: Severity
  /** Distinguishes alerts of one rule: a type, a topic, a worker. */
  readonly labels: Readonly<Record<string, string>>
  readonly text: string
  /** The value that the rule checks. Null for a rule without one. */
  readonly value: number | null
  readonly sinceMs: number
  /** What to do about it: a path in this package, such as `docs/runbook.md#enginedown`, or what the rule gave. */
  readonly runbook?: string
}

export interface MillEvents {
  'job.enqueued': { readonly id: string; readonly type: string; readonly status: string; readonly bytes: number }
  'job.claimed': { readonly job: JobFacts; readonly attempt: number; readonly worker: string }
  'job.started': { readonly job: JobFacts; readonly attempt: number; readonly worker: string }
  'job.progress': {
    readonly job: JobFacts
    readonly attempt: number
    readonly worker: string
    readonly progress: unknown
  }
  /** The engine has accepted the outcome. `retry` and `dead`: the attempt failed. */
  'job.settled': {
    readonly job: JobFacts
    readonly attempt: number
    readonly worker: string
    readonly outcome: Outcome
    readonly durationMs: number
    /** Whether the handler was called. A job may be given back before. */
    readonly started: boolean
  }
  'job.cancelled': { readonly id: string; readonly who: string; readonly reason: string }
  'lease.lost': {
    readonly job: JobFacts
    readonly attempt: number
    readonly worker: string
    readonly reason: LostReason
    readonly started: boolean
  }
  'lease.reaped': {
    readonly job: JobFacts
    readonly attempt: number
    readonly worker: string
    readonly outcome: Outcome
  }
  'worker.started': {
    readonly worker: string
    /** Left out where heartbeats call it by its types. */
    readonly name?: string
    readonly types: readonly string[]
    readonly concurrency: number
  }
  /** The paused types of this worker. Empty: all types are running again. */
  'worker.paused': { readonly worker: string; readonly types: readonly string[] }
  /** Types of this worker whose limits were changed, or reset to the definition's. Null: no limit. `concurrency`: of this worker, or over all of them where the definition says so. */
  'worker.limited': {
    readonly worker: string
    readonly types: readonly {
      readonly type: string
      readonly concurrency: number | null
      readonly limit: { readonly max: number; readonly perMs: number } | null
    }[]
  }
  'worker.stopping': { readonly worker: string; readonly running: readonly string[]; readonly cause: string }
  'worker.overdue': { readonly worker: string; readonly running: readonly string[]; readonly drainMs: number }
  'worker.stopped': { readonly worker: string }
  /** The worker goes on after this error. `during` names what it was doing. */
  'worker.error': { readonly worker: string; readonly during: string; readonly error: unknown }
  /**
   * The machine's wall clock was set forward or (negative) back, or the machine was suspended. Leases, rate limits and
   * recovery continue by elapsed time.
   */
  'clock.stepped': { readonly stepMs: number; readonly atMs: number }
  'hook.error': { readonly job: JobFacts; readonly hook: string; readonly error: unknown }
  /** How many jobs were removed by age and for space. `interrupted`: the pass was stopped early. */
  'retention.pass': {
    readonly removed: number
    readonly evicted: number
    readonly interrupted: boolean
    readonly durationMs: number
  }
  'reaper.pass': { readonly retried: number; readonly dead: number; readonly durationMs: number }
  'keeper.started': { readonly keeper: string; readonly duties: readonly string[] }
  /** This keeper leads. `term` grows with every change of leader. */
  'keeper.leading': { readonly keeper: string; readonly term: number }
  /** This keeper no longer leads. */
  'keeper.waiting': { readonly keeper: string }
  /** `schedules`: those declared here. They stay stored. */
  'keeper.stopped': { readonly keeper: string; readonly schedules: readonly string[] }
  /** The keeper goes on after this error. `during` names what it was doing. */
  'keeper.error': { readonly keeper: string; readonly during: string; readonly error: unknown }
  /** A schedule declared in code, whether or not it changed the stored one. */
  'schedule.registered': {
    readonly name: string
    readonly type: string
    readonly cron: string
    readonly tz: string
    readonly nextAtMs: number | null
  }
  'schedule.fired': {
    readonly name: string
    readonly type: string
    readonly tickMs: number
    readonly lateMs: number
    readonly jobId: string
    readonly status: string
  }
  /** A tick was skipped because the previous run, `jobId`, is still queued or in progress. */
  'schedule.skipped': {
    readonly name: string
    readonly type: string
    readonly tickMs: number
    readonly jobId: string
  }
  /** `count` ticks since `firstMs` were not enqueued, because no keeper was running. `isLeast`: there were more. */
  'schedule.missed': {
    readonly name: string
    readonly type: string
    readonly count: number
    readonly isLeast: boolean
    readonly firstMs: number
  }
  /** A schedule was changed by this process. */
  'schedule.changed': { readonly name: string; readonly change: string }
  /** A desk of this mill acted on a dead letter. */
  'desk.acted': { readonly action: DeskAction; readonly id: string; readonly type: string; readonly who: string }
  'alert.firing': { readonly alert: Alert }
  'alert.resolved': { readonly alert: Alert }
}

export type EventName = keyof MillEvents
type Listener<Name extends EventName> = (event: MillEvents[Name]) => void

/** An object per registration, so that a listener registered twice can be removed once. */
interface Registration {
  readonly listener: Listener<EventName>
}

/**
 * A typed emitter. A listener that throws or rejects is reported and does not affect the work. The lists are replaced, not
 * changed, so that listeners can be added or removed during `emit`, which allocates nothing.
 */
export class Events {
  readonly #listeners = new Map<EventName, readonly Registration[]>()
  readonly #onListenerError: (error: unknown) => void

  constructor(onListenerError: (error: unknown) => void = () => {}) {
    this.#onListenerError = onListenerError
  }

  /** Returns a function that removes the listener. */
  on<Name extends EventName>(name: Name, listener: Listener<Name>): () => void {
    // The map separates names, so a listener only receives events of its name.
    const entry: Registration = { listener: listener as Listener<EventName> }
    this.#listeners.set(name, [...(this.#listeners.get(name) ?? []), entry])
    return () => {
      const others = (this.#listeners.get(name) ?? []).filter((other) => other !== entry)
      this.#listeners.set(name, others)
    }
  }

  /** Registers several listeners. Returns one unsubscriber for all. */
  attach(listeners: { readonly [Name in EventName]?: Listener<Name> }): () => void {
    // A key and its value belong together by the type above.
    const entries = Object.entries(listeners) as [EventName, Listener<EventName>][]
    const detachers = entries.map(([name, listener]) => this.on(name, listener))
    return () => {
      for (const detach of detachers) detach()
    }
  }

  /** Resolves with the first event of that name that `matches`. */
  next<Name extends EventName>(
    name: Name,
    matches: (event: MillEvents[Name]) => boolean = () => true,
  ): Promise<MillEvents[Name]> {
    return new Promise((resolve) => {
      const off = this.on(name, (event) => {
        if (!matches(event)) return
        off()
        resolve(event)
      })
    })
  }

  /** Hot paths check this before they build an event. */
  hasListener(name: EventName): boolean {
    const listeners = this.#listeners.get(name)
    return listeners !== undefined && listeners.length > 0
  }

  emit<Name extends EventName>(name: Name, event: MillEvents[Name]): void {
    const listeners = this.#listeners.get(name)
    if (listeners === undefined) return
    for (const { listener } of listeners) {
      try {
        const answer: unknown = listener(event)
        if (answer instanceof Promise) answer.catch((error: unknown) => this.#report(error))
      } catch (error) {
        this.#report(error)
      }
    }
  }

  #report(error: unknown): void {
    try {
      this.#onListenerError(error)
    } catch {
      // Reporting failed too. The work goes on.
    }
  }
}

/** The events of several mills as if they were those of one. What is emitted to it goes to the first. */
export function joinEvents(first: Events, ...others: readonly Events[]): Events {
  return others.length === 0 ? first : new JoinedEvents([first, ...others])
}

/** It listens to a part only for names that somebody listens to, so that hot paths skip the others. */
class JoinedEvents extends Events {
  readonly #parts: readonly [Events, ...Events[]]

  constructor(parts: readonly [Events, ...Events[]]) {
    super()
    this.#parts = parts
  }

  override on<Name extends EventName>(name: Name, listener: Listener<Name>): () => void {
    const detachers = this.#parts.map((part) => part.on(name, listener))
    return () => {
      for (const detach of detachers) detach()
    }
  }

  override hasListener(name: EventName): boolean {
    return this.#parts[0].hasListener(name)
  }

  override emit<Name extends EventName>(name: Name, event: MillEvents[Name]): void {
    this.#parts[0].emit(name, event)
  }
}
