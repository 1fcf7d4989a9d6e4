/**
 * Everything observable happens as one of these events; logs, metrics and alerts only listen.
 * They carry ids and sizes, never payloads (I12). Names are stable.
 */
import type { DeskAction } from './engine/dead-letters.ts'
import type { LostReason, Outcome } from './engine/outcome.ts'
import type { StoredJob } from './job/job.ts'

/** The job as observers may see it: no payload. */
export type JobFacts = Pick<StoredJob, 'id' | 'type' | 'priority' | 'attempts' | 'tenant' | 'runAtMs' | 'createdAtMs'>

/** The one scale of alerts, alarms and conditions, mildest first. */
export type Severity = 'info' | 'warning' | 'error' | 'critical'

/** What is wrong, how bad it is, and since when. */
export interface Alert {
  /** The name of the rule that raises it. */
  readonly rule: string
  readonly severity: Severity
  /** What tells alerts of one rule apart: a type, a topic, a worker. */
  readonly labels: Readonly<Record<string, string>>
  readonly text: string
  /** The figure that the rule looks at; null for a rule without one. */
  readonly value: number | null
  readonly sinceMs: number
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
  /** After the engine accepted it. For `retry` and `dead`, the attempt failed. */
  'job.settled': {
    readonly job: JobFacts
    readonly attempt: number
    readonly worker: string
    readonly outcome: Outcome
    readonly durationMs: number
    /** Whether its handler was called: a job may be given back before. */
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
  'worker.started': { readonly worker: string; readonly types: readonly string[]; readonly concurrency: number }
  /** Of these types the worker starts nothing from now on, though it could; none when it goes on with all. */
  'worker.paused': { readonly worker: string; readonly types: readonly string[] }
  'worker.stopping': { readonly worker: string; readonly running: readonly string[]; readonly cause: string }
  'worker.overdue': { readonly worker: string; readonly running: readonly string[]; readonly drainMs: number }
  'worker.stopped': { readonly worker: string }
  /** The worker goes on after this; `during` says what it was doing. */
  'worker.error': { readonly worker: string; readonly during: string; readonly error: unknown }
  /**
   * The wall clock of this machine was set, forward or (negative) back, or the machine was suspended for as long. Leases,
   * rate limits and recovery go on by elapsed time.
   */
  'clock.stepped': { readonly stepMs: number; readonly atMs: number }
  'hook.error': { readonly job: JobFacts; readonly hook: string; readonly error: unknown }
  /** Jobs removed by age and for space, and whether the pass was ended before it was through. */
  'retention.pass': {
    readonly removed: number
    readonly evicted: number
    readonly interrupted: boolean
    readonly durationMs: number
  }
  'reaper.pass': { readonly retried: number; readonly dead: number; readonly durationMs: number }
  'keeper.started': { readonly keeper: string; readonly duties: readonly string[] }
  /** It holds the office; `term` grows whenever that changes hands. */
  'keeper.leading': { readonly keeper: string; readonly term: number }
  /** It has lost the office, or given it up. */
  'keeper.waiting': { readonly keeper: string }
  /** `schedules`: those declared here. They stay stored; only this keeper no longer looks after them. */
  'keeper.stopped': { readonly keeper: string; readonly schedules: readonly string[] }
  /** The keeper goes on after this; `during` says what it was doing. */
  'keeper.error': { readonly keeper: string; readonly during: string; readonly error: unknown }
  /** Declared by code that starts here, whether that changed what is stored or not. */
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
  /** A tick was left out because the run before, `jobId`, is still queued or in progress. */
  'schedule.skipped': {
    readonly name: string
    readonly type: string
    readonly tickMs: number
    readonly jobId: string
  }
  /** Nothing was enqueued for `count` ticks since `firstMs`, because no keeper ran then; `isLeast` when there were more. */
  'schedule.missed': {
    readonly name: string
    readonly type: string
    readonly count: number
    readonly isLeast: boolean
    readonly firstMs: number
  }
  /** By an act in this process. */
  'schedule.changed': { readonly name: string; readonly change: string }
  /** A dead letter was dealt with, at a desk of this mill. */
  'desk.acted': { readonly action: DeskAction; readonly id: string; readonly type: string; readonly who: string }
  'alert.firing': { readonly alert: Alert }
  'alert.resolved': { readonly alert: Alert }
}

export type EventName = keyof MillEvents
type Listener<Name extends EventName> = (event: MillEvents[Name]) => void

/** One registration, so that a listener that is registered twice can be removed once. */
interface Registration {
  readonly listener: Listener<EventName>
}

/**
 * A typed emitter. A listener that throws, or rejects, is reported and never disturbs the work it watches. The lists are
 * replaced, not changed, so that a listener may come or go while an event is told and `emit` allocates nothing.
 */
export class Events {
  readonly #listeners = new Map<EventName, readonly Registration[]>()
  readonly #onListenerError: (error: unknown) => void

  constructor(onListenerError: (error: unknown) => void = () => {}) {
    this.#onListenerError = onListenerError
  }

  /** Returns the unsubscriber. */
  on<Name extends EventName>(name: Name, listener: Listener<Name>): () => void {
    // The map keeps names apart, so a listener is only ever told events of its name.
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

  /** Whether anyone listens: a hot path asks before it builds an event that nobody would hear. */
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
      // Whoever reports has failed too; there is nobody left to tell, and the work goes on.
    }
  }
}
