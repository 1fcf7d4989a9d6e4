import type { Lost, Settlement } from '../../../engine/outcome.ts'

/** What the node of one type has answered for some leases, or why it has not. */
export type Answered =
  | { readonly tokens: readonly string[]; readonly lost: readonly Lost[] }
  | { readonly error: unknown }

const KEPT_MAX = 10_000

/**
 * Answers of a settle that failed on another node. The worker repeats such a call whole, and asking again would report the
 * outcomes that were applied as lost.
 */
export class KeptAnswers {
  readonly #answers = new Map<string, Lost | null>()

  /** Takes out what is known of these. */
  split(settlements: readonly Settlement[]): {
    readonly known: readonly Answered[]
    readonly asked: readonly Settlement[]
  } {
    if (this.#answers.size === 0) return { known: [], asked: settlements }
    const known: Answered[] = []
    const asked: Settlement[] = []
    for (const settlement of settlements) {
      const { token } = settlement.lease
      const answer = this.#answers.get(token)
      if (answer === undefined) asked.push(settlement)
      else known.push({ tokens: [token], lost: answer === null ? [] : [answer] })
      this.#answers.delete(token)
    }
    return { known, asked }
  }

  keep(answers: readonly Answered[]): void {
    for (const answer of answers) {
      if ('error' in answer) continue
      const lostOf = new Map(answer.lost.map((lost) => [lost.lease.token, lost]))
      for (const token of answer.tokens) this.#answers.set(token, lostOf.get(token) ?? null)
    }
    // A worker that gave up does not ask for them again.
    for (const token of this.#answers.keys()) {
      if (this.#answers.size <= KEPT_MAX) break
      this.#answers.delete(token)
    }
  }
}
