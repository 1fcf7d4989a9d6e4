import type { AlertFacts } from '../../events.ts'
import { parseDurationMs } from '../../time/duration.ts'
import type { AlertRule, Breach, Sample } from './rule.ts'

/** pending: it holds, but not yet for long enough. firing: it has been told. resolved: it no longer holds. */
export interface AlertState extends AlertFacts {
  readonly status: 'pending' | 'firing' | 'resolved'
  /** The severity as its document writes it. */
  readonly word: string
  readonly threshold: number | null
  readonly firedAtMs: number | null
  readonly resolvedAtMs: number | null
}

/** Something to tell: an alert fires, still fires, or is resolved. */
export interface AlertNotice {
  readonly status: 'firing' | 'resolved'
  /** It was told before, and nobody has mended it. */
  readonly repeated: boolean
  readonly alert: AlertState
}

interface Held {
  readonly rule: AlertRule
  alert: AlertState
  toldAtMs: number
}

/** How many resolved alerts are remembered. */
const RESOLVED_MAX = 100

/** What becomes of breaches over time (X089). Nothing here waits or asks: whoever has a sample says so. */
export class Evaluator {
  readonly #rules: readonly AlertRule[]
  readonly #repeatMs: number
  readonly #onRuleError: (rule: AlertRule, error: unknown) => void
  readonly #held = new Map<string, Held>()
  readonly #resolved = new Map<string, AlertState>()

  constructor(
    rules: readonly AlertRule[],
    repeatMs: number,
    onRuleError: (rule: AlertRule, error: unknown) => void = () => {},
  ) {
    this.#rules = rules
    this.#repeatMs = repeatMs
    this.#onRuleError = onRuleError
  }

  /** Those that fire or are pending, oldest first, then those that were resolved, newest first. */
  current(): readonly AlertState[] {
    const held = [...this.#held.values()].map(({ alert }) => alert)
    return [...held.toSorted((one, other) => one.sinceMs - other.sinceMs), ...[...this.#resolved.values()].toReversed()]
  }

  /** What is to be told after this look. */
  step(sample: Sample): readonly AlertNotice[] {
    return this.#rules.flatMap((rule) => {
      const breaches = this.#breaches(rule, sample)
      return breaches === null ? [] : this.#apply(rule, breaches, sample.atMs)
    })
  }

  #breaches(rule: AlertRule, sample: Sample): readonly Breach[] | null {
    try {
      return rule.evaluate(sample)
    } catch (error) {
      this.#onRuleError(rule, error)
      return null
    }
  }

  #apply(rule: AlertRule, breaches: readonly Breach[], nowMs: number): readonly AlertNotice[] {
    const notices: AlertNotice[] = []
    const holding = new Set<string>()
    for (const breach of breaches) {
      const key = keyOf(rule, breach)
      holding.add(key)
      const notice = this.#hold(key, rule, breach, nowMs)
      if (notice !== null) notices.push(notice)
    }
    for (const [key, held] of this.#held) {
      if (held.rule !== rule || holding.has(key)) continue
      this.#held.delete(key)
      // What never fired is no news when it ends.
      if (held.alert.status === 'firing') notices.push(this.#resolve(key, held.alert, nowMs))
    }
    return notices
  }

  #hold(key: string, rule: AlertRule, breach: Breach, nowMs: number): AlertNotice | null {
    const held = this.#held.get(key) ?? { rule, alert: newAlert(rule, breach, nowMs), toldAtMs: nowMs }
    this.#held.set(key, held)
    const { value, threshold, text } = breach
    held.alert = { ...held.alert, value, threshold, text }
    const { status, sinceMs } = held.alert
    if (status === 'firing') {
      if (nowMs - held.toldAtMs < this.#repeatMs) return null
      held.toldAtMs = nowMs
      return { status: 'firing', repeated: true, alert: held.alert }
    }
    if (nowMs - sinceMs < parseDurationMs(rule.for ?? 0, 'for')) return null
    held.alert = { ...held.alert, status: 'firing', firedAtMs: nowMs }
    held.toldAtMs = nowMs
    this.#resolved.delete(key)
    return { status: 'firing', repeated: false, alert: held.alert }
  }

  #resolve(key: string, alert: AlertState, nowMs: number): AlertNotice {
    const resolved: AlertState = { ...alert, status: 'resolved', resolvedAtMs: nowMs }
    this.#resolved.set(key, resolved)
    for (const old of this.#resolved.keys()) {
      if (this.#resolved.size <= RESOLVED_MAX) break
      this.#resolved.delete(old)
    }
    return { status: 'resolved', repeated: false, alert: resolved }
  }
}

function newAlert({ name, severity, word }: AlertRule, breach: Breach, nowMs: number): AlertState {
  return {
    rule: name,
    severity,
    word: word ?? severity,
    ...breach,
    status: 'pending',
    sinceMs: nowMs,
    firedAtMs: null,
    resolvedAtMs: null,
  }
}

function keyOf({ name }: AlertRule, { labels }: Breach): string {
  return JSON.stringify([name, ...Object.entries(labels).toSorted()])
}
