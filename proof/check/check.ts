/** Judges a history and the final store, and nothing else: the same facts always get the same verdict. */
import type { Capabilities } from '../../src/engine/capabilities.ts'
import type { History } from '../history/entry.ts'
import type { Evidence, Tally } from './evidence.ts'
import type { FinalStore } from './final-store.ts'
import { gather } from './gather.ts'
import { rules } from './rules/index.ts'

/** One thing that must never be seen. */
export interface Rule {
  /** The guarantee, `I3`, or the name of a promise beside them: `order`, `latest`, `limits`. */
  readonly name: string
  /** What the engine promises, as a sentence. */
  readonly promise: string
  /** Why it does not apply to the engine, or null. */
  excuse?(capabilities: Capabilities): string | null
  judge(evidence: Evidence, report: Report): void
}

/** Where a rule reports what it found. */
export interface Report {
  /** Something that the contract forbids, as a sentence. `job`: the one that it is about, or null. */
  violation(job: string | null, sentence: string): void
  /** Something that cannot be judged, and why. Equal texts are counted together, so they name no job. */
  unjudged(why: string): void
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
  /** What the history leaves open. */
  readonly unjudged: readonly { readonly rule: string; readonly why: string; readonly count: number }[]
  readonly tally: Tally
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
  const violations: Violation[] = []
  const excused: Verdict['excused'][number][] = []
  const unjudged: Verdict['unjudged'][number][] = []
  for (const rule of rules) {
    const why = rule.excuse?.(facts.capabilities) ?? null
    if (why !== null) {
      excused.push({ rule: rule.name, why })
      continue
    }
    const counts = new Map<string, number>()
    rule.judge(evidence, {
      violation: (job, sentence) => void violations.push({ rule: rule.name, job, sentence }),
      unjudged: (reason) => void counts.set(reason, (counts.get(reason) ?? 0) + 1),
    })
    for (const [reason, count] of counts) unjudged.push({ rule: rule.name, why: reason, count })
  }
  return { violations, excused, unjudged, tally: evidence.tally }
}
