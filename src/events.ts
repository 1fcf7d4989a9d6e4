/**
 * Everything observable happens as one of these events; logs, metrics and alerts only listen.
 * They carry ids and sizes, never payloads (I12). Names are stable.
 */
import type { LostReason, Outcome } from './engine/outcome.ts'
import type { StoredJob } from './job/job.ts'

/** The job as observers may see it: no payload. */
export type JobFacts = Pick<StoredJob, 'id' | 'type' | 'priority' | 'attempts' | 'tenant' | 'runAtMs' | 'createdAtMs'>

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
  }
  'job.cancelled': { readonly id: string; readonly who: string; readonly reason: string }
  'lease.lost': {
    readonly job: JobFacts
    readonly attempt: number
    readonly worker: string
    readonly reason: LostReason
  }
  'lease.reaped': {
    readonly job: JobFacts
    readonly attempt: number
    readonly worker: string
    readonly outcome: Outcome
  }
  'worker.started': { readonly worker: string; readonly types: readonly string[]; readonly concurrency: number }
  'worker.stopping': { readonly worker: string; readonly running: readonly string[]; readonly cause: string }
  'worker.overdue': { readonly worker: string; readonly running: readonly string[]; readonly drainMs: number }
  'worker.stopped': { readonly worker: string }
  /** The worker goes on after this; `during` says what it was doing. */
  'worker.error': { readonly worker: string; readonly during: string; readonly error: unknown }
  'hook.error': { readonly job: JobFacts; readonly hook: string; readonly error: unknown }
  'reaper.pass': { readonly retried: number; readonly dead: number; readonly durationMs: number }
}

export type EventName = keyof MillEvents
type Listener<Name extends EventName> = (event: MillEvents[Name]) => void

/**
 * A typed emitter. A listener that throws, or rejects, is reported and never disturbs the work it watches. The lists are
 * replaced, not changed, so that a listener may come or go while an event is told and `emit` allocates nothing.
 */
export class Events {
  readonly #listeners = new Map<EventName, readonly Listener<EventName>[]>()
  readonly #onListenerError: (error: unknown) => void

  constructor(onListenerError: (error: unknown) => void = () => {}) {
    this.#onListenerError = onListenerError
  }

  /** Returns the unsubscriber. */
  on<Name extends EventName>(name: Name, listener: Listener<Name>): () => void {
    // A function of its own, so that one listener registered twice can be removed once. The map keeps names apart.
    const entry = ((event: MillEvents[Name]) => listener(event)) as Listener<EventName>
    this.#listeners.set(name, [...(this.#listeners.get(name) ?? []), entry])
    return () => {
      const others = (this.#listeners.get(name) ?? []).filter((other) => other !== entry)
      this.#listeners.set(name, others)
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
  hears(name: EventName): boolean {
    const listeners = this.#listeners.get(name)
    return listeners !== undefined && listeners.length > 0
  }

  emit<Name extends EventName>(name: Name, event: MillEvents[Name]): void {
    const listeners = this.#listeners.get(name)
    if (listeners === undefined) return
    for (const listener of listeners) {
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
