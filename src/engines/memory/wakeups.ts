import type { JobView } from '../../job/job.ts'

/**
 * Wakes what waits on the store: claims, when a job was queued; `waitFor`, when a job has finished. Claims are woken once
 * per step, after it is complete, because they claim from within the call.
 */
export class Wakeups {
  readonly #claims = new Set<() => void>()
  readonly #waits = new Map<string, Set<(view: JobView) => void>>()
  #queued = false

  onQueued(listener: () => void): () => void {
    this.#claims.add(listener)
    return () => void this.#claims.delete(listener)
  }

  onFinished(id: string, listener: (view: JobView) => void): () => void {
    const listeners = this.#waits.get(id) ?? new Set()
    this.#waits.set(id, listeners)
    listeners.add(listener)
    return () => {
      listeners.delete(listener)
      if (listeners.size === 0 && this.#waits.get(id) === listeners) this.#waits.delete(id)
    }
  }

  /** A job was queued, now or for later: waiting claims must look again. */
  markQueued(): void {
    this.#queued = true
  }

  wakeClaims(): void {
    if (!this.#queued) return
    this.#queued = false
    for (const wake of [...this.#claims]) wake()
  }

  /** The view is made only if something waits for it. */
  finished(id: string, toView: () => JobView): void {
    const listeners = this.#waits.get(id)
    if (listeners === undefined) return
    this.#waits.delete(id)
    const view = toView()
    for (const listener of listeners) listener(view)
  }
}

/** Calls back at the first abort. Unlike AbortSignal.any it leaves nothing behind on a long-lived signal. */
export function onAbort(signals: readonly AbortSignal[], listener: () => void): () => void {
  for (const signal of signals) signal.addEventListener('abort', listener, { once: true })
  return () => {
    for (const signal of signals) signal.removeEventListener('abort', listener)
  }
}
