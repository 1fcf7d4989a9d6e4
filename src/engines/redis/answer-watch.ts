import { backgroundClock } from '../../time/clock.ts'

/** A call on its way. */
export interface SentCall {
  readonly sentMs: number
  /** It has no answer although its time is over. */
  isLate: boolean
}

/**
 * Whether the calls on one connection are answered in time, by one timer for all of them. The driver would start and end
 * two for each, which takes a tenth of the time that a client needs for a short call.
 */
export class AnswerWatch {
  readonly #answerMs: number
  readonly #onLate: () => void
  /** The oldest first. */
  readonly #calls = new Set<SentCall>()
  #cancel: (() => void) | null = null

  /** `onLate` is called once for all calls that are late at the same time. */
  constructor(answerMs: number, onLate: () => void) {
    this.#answerMs = answerMs
    this.#onLate = onLate
  }

  begin(): SentCall {
    const call = { sentMs: backgroundClock.monotonicMs(), isLate: false }
    this.#calls.add(call)
    if (this.#cancel === null) this.#lookIn(this.#answerMs)
    return call
  }

  end(call: SentCall): void {
    this.#calls.delete(call)
  }

  /** The timer goes on when its call is answered: it then waits for the oldest that is not. */
  #lookIn(ms: number): void {
    this.#cancel = backgroundClock.after(ms, () => {
      this.#cancel = null
      this.#look()
    })
  }

  #look(): void {
    const overMs = backgroundClock.monotonicMs() - this.#answerMs
    let isAnyLate = false
    for (const call of this.#calls) {
      if (call.isLate) continue
      if (call.sentMs > overMs) {
        this.#lookIn(call.sentMs - overMs)
        break
      }
      call.isLate = true
      isAnyLate = true
    }
    if (isAnyLate) this.#onLate()
  }

  close(): void {
    this.#cancel?.()
    this.#calls.clear()
  }
}
