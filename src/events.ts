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

/** A typed emitter. A listener that throws is reported and never disturbs the work it watches. */
export class Events {
  readonly #listeners = new Map<EventName, Set<Listener<EventName>>>()
  readonly #onListenerError: (error: unknown) => void

  constructor(onListenerError: (error: unknown) => void = () => {}) {
    this.#onListenerError = onListenerError
  }

  /** Returns the unsubscriber. */
  on<Name extends EventName>(name: Name, listener: Listener<Name>): () => void {
    const listeners = this.#listeners.get(name) ?? new Set()
    this.#listeners.set(name, listeners)
    const entry = listener as Listener<EventName>
    listeners.add(entry)
    return () => void listeners.delete(entry)
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
    return listeners !== undefined && listeners.size > 0
  }

  emit<Name extends EventName>(name: Name, event: MillEvents[Name]): void {
    const listeners = this.#listeners.get(name)
    if (listeners === undefined) return
    for (const listener of listeners) {
      try {
        listener(event)
      } catch (error) {
        this.#onListenerError(error)
      }
    }
  }
}
