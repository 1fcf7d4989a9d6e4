/** Judges a history and the final store, and nothing else: the same facts always get the same verdict. */
import type { Capabilities } from '../../src/engine/capabilities.ts'
import type { History } from '../history/entry.ts'
import { type Evidence, gather } from './evidence.ts'
import type { FinalStore } from './final-store.ts'
import { rules } from './rules/index.ts'

/** One thing that must never be seen. */
export interface Rule {
  /** The guarantee, `I3`, or the name of a promise beside them: `order`, `latest`, `limits`. */
  readonly name: string
  /** What the engine promises, as a sentence. */
  readonly promise: string
  /** Why it does not apply to the engine, or null. */
  excuse?(capabilities: Capabilities): string | null
  judge(evidence: Evidence): readonly Violation[]
}

export interface Violation {
  readonly rule: string
  /** The job that it is about; null when it is about none alone. */
  readonly job: string | null
  /** What broke, as a sentence. */
  readonly sentence: string
}

export interface Verdict {
  readonly violations: readonly Violation[]
  /** Rules that do not apply, and why. */
  readonly excused: readonly { readonly rule: string; readonly why: string }[]
  readonly tally: Evidence['tally']
}

export interface Facts {
  readonly history: History
  readonly final: FinalStore
  readonly capabilities: Capabilities
}

/**
 * Whether everything that a run did and saw is allowed by the contract.
 *
 * @example
 * const { violations } = check({ history: readHistory('./history'), final, capabilities: engine.capabilities })
 */
export function check(facts: Facts): Verdict {
  const evidence = gather(facts)
  const excused = rules.flatMap((rule) => {
    const why = rule.excuse?.(facts.capabilities) ?? null
    return why === null ? [] : [{ rule: rule.name, why }]
  })
  const judged = rules.filter((rule) => (rule.excuse?.(facts.capabilities) ?? null) === null)
  return { violations: judged.flatMap((rule) => rule.judge(evidence)), excused, tally: evidence.tally }
}
