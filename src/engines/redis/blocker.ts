import { systemClock } from '../../time/clock.ts'
import type { Link } from './link.ts'

/** Redis counts from here; 0 would mean for ever. */
const WAIT_MS_MIN = 10
/** After a refusal, so that whoever asks again at once does not spin. */
const PAUSE_MS = 100

/** What BZPOPMIN took away. */
export interface Popped {
  readonly key: string
  readonly member: string
  readonly score: number
}

/** A connection of its own that waits for the first entry in one of several sorted sets. One wait at a time. */
export class Blocker {
  readonly #link: Link
  readonly #graceMs: number
  readonly #onClose: () => void
  #closed = false

  /** `graceMs`: how much later than asked for the server may answer before its connection is given up. */
  constructor(link: Link, graceMs: number, onClose: () => void) {
    this.#link = link
    this.#graceMs = graceMs
    this.#onClose = onClose
  }

  /**
   * Null when there was none in time, on abort, after `close` and when the connection was lost: it never rejects,
   * because whoever waits for work looks for it then in any case. An abort cuts the connection, and may lose an entry
   * that is on its way at that moment.
   */
  async pop(keys: readonly string[], waitMs: number, signal: AbortSignal): Promise<Popped | null> {
    if (signal.aborted || this.#closed) return null
    const untilMs = systemClock.monotonicMs() + waitMs
    const unsent = Promise.withResolvers<null>()
    const cut = (): void => {
      // What waits at the server ends with its connection, which takes a moment; what was never sent ends at once.
      if (!this.#link.isReady) unsent.resolve(null)
      this.#link.reset()
    }
    const cancelDeadline = systemClock.after(waitMs + this.#graceMs, cut)
    signal.addEventListener('abort', cut, { once: true })
    try {
      const seconds = Math.max(waitMs, WAIT_MS_MIN) / 1_000
      const sent = this.#link.send('bzpopmin', [...keys, seconds], waitMs)
      return toPopped(await Promise.race([sent, unsent.promise]))
    } catch {
      const left = Math.max(0, untilMs - systemClock.monotonicMs())
      if (!this.#closed) await systemClock.sleep(Math.min(left, PAUSE_MS), signal)
      return null
    } finally {
      cancelDeadline()
      signal.removeEventListener('abort', cut)
    }
  }

  close(): void {
    this.#closed = true
    this.#link.close()
    this.#onClose()
  }
}

function toPopped(answer: unknown): Popped | null {
  if (!Array.isArray(answer)) return null
  const [key, member, score] = answer
  return { key: String(key), member: String(member), score: Number(score) }
}
