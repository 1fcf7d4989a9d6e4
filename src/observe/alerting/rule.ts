import type { AlertFacts } from '../../events.ts'
import type { Duration } from '../../time/duration.ts'
import type { Figures } from '../figures/figures.ts'
import type { Found } from '../found.ts'
import type { Health } from '../health/health.ts'
import type { Reading } from '../watch/watch.ts'

/** One look at everything that rules are about. A source that is away takes nothing from the others. */
export interface Sample {
  readonly atMs: number
  /** Document B's key figures. */
  readonly figures: Found<Figures>
  /** Document A's checks, each of which says so when it could not be made. */
  readonly health: Health
  /** Document D's workers, lags and dead letters by topic; null where nobody watches them. */
  readonly reading: Reading | null
}

/** Something that a rule is against. */
export interface Breach {
  /** What tells several breaches of one rule apart. */
  readonly labels: Readonly<Record<string, string>>
  readonly value: number | null
  readonly threshold: number | null
  readonly text: string
}

export interface AlertRule {
  /** Unique among the rules of one evaluator. */
  readonly name: string
  readonly severity: AlertFacts['severity']
  /** The severity as its document writes it (X014); the same word unless told. */
  readonly word?: string
  /** For how long it must hold before it fires; at once unless told. */
  readonly for?: Duration
  /** What is wrong. Null: nothing can be said now, so whatever was said before stands. */
  readonly evaluate: (sample: Sample) => readonly Breach[] | null
}

export const NO_BREACH: readonly Breach[] = Object.freeze([])
