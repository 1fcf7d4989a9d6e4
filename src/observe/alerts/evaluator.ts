import type { Alert } from '../../events.ts'
import { omitUndefined } from '../../job/known-options.ts'
import { parseDurationMs } from '../../time/duration.ts'
import type { AlertRule, AlertSubject, Breach, Sample } from './rule.ts'

/** pending: it holds, but not for long enough. firing: sinks were notified. resolved: it no longer holds. */
export interface AlertState extends Alert {
  readonly status: 'pending' | 'firing' | 'resolved'
  readonly severityLabel: string
  readonly threshold: number | null
  readonly unit?: Breach['unit']
  readonly about?: AlertSubject
  readonly firedAtMs: number | null
  readonly resolvedAtMs: number | null
}

/** An alert fires, still fires, or is resolved. */
export interface AlertNotice {
  readonly status: 'firing' | 'resolved'
  /** Sent before: the alert still fires. */
  readonly repeated: boolean
  readonly alert: AlertState
}

type RuleFacts = Omit<AlertRule, 'evaluate'>

interface Active {
  readonly rule: RuleFacts
  alert: AlertState
  sentAtMs: number
}

/** How many resolved alerts are remembered. */
const RESOLVED_MAX = 100

/** Turns breaches into alerts over time. It reads nothing itself: the caller brings each sample. */
export class Evaluator<Reading = unknown> {
  readonly #rules: readonly AlertRule<Reading>[]
  readonly #repeatMs: number
  readonly #onRuleError: (rule: AlertRule<Reading>, error: unknown) => void
  readonly #active = new Map<string, Active>()
  readonly #resolved = new Map<string, AlertState>()

  constructor(
    rules: readonly AlertRule<Reading>[],
    repeatMs: number,
    onRuleError: (rule: AlertRule<Reading>, error: unknown) => void = () => {},
  ) {
    this.#rules = rules
    this.#repeatMs = repeatMs
    this.#onRuleError = onRuleError
  }

  /** Firing and pending alerts, oldest first, then resolved ones, newest first. */
  current(): readonly AlertState[] {
    const held = [...this.#active.values()].map(({ alert }) => alert)
    return [...held.toSorted((one, other) => one.sinceMs - other.sinceMs), ...[...this.#resolved.values()].toReversed()]
  }

  /** The notices to send for this sample. */
  step(sample: Sample<Reading>): readonly AlertNotice[] {
    return this.#rules.flatMap((rule) => {
      const breaches = this.#breaches(rule, sample)
      return breaches === null ? [] : this.#apply(rule, breaches, sample.atMs)
    })
  }

  #breaches(rule: AlertRule<Reading>, sample: Sample<Reading>): readonly Breach[] | null {
    try {
      return rule.evaluate(sample)
    } catch (error) {
      this.#onRuleError(rule, error)
      return null
    }
  }

  #apply(rule: AlertRule<Reading>, breaches: readonly Breach[], nowMs: number): readonly AlertNotice[] {
    const notices: AlertNotice[] = []
    const holding = new Set<string>()
    for (const breach of breaches) {
      const key = keyOf(rule, breach)
      holding.add(key)
      const notice = this.#hold(key, rule, breach, nowMs)
      if (notice !== null) notices.push(notice)
    }
    for (const [key, held] of this.#active) {
      if (held.rule !== rule || holding.has(key)) continue
      this.#active.delete(key)
      // An alert that never fired ends silently.
      if (held.alert.status === 'firing') notices.push(this.#resolve(key, held.alert, nowMs))
    }
    return notices
  }

  #hold(key: string, rule: AlertRule<Reading>, breach: Breach, nowMs: number): AlertNotice | null {
    const held = this.#active.get(key) ?? { rule, alert: newAlert(rule, breach, nowMs), sentAtMs: nowMs }
    this.#active.set(key, held)
    const { value, threshold, text } = breach
    held.alert = { ...held.alert, value, threshold, text }
    const { status, sinceMs } = held.alert
    if (status === 'firing') {
      if (nowMs - held.sentAtMs < this.#repeatMs) return null
      held.sentAtMs = nowMs
      return { status: 'firing', repeated: true, alert: held.alert }
    }
    if (nowMs - sinceMs < parseDurationMs(rule.for ?? 0, 'for')) return null
    held.alert = { ...held.alert, status: 'firing', firedAtMs: nowMs }
    held.sentAtMs = nowMs
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

function newAlert(rule: RuleFacts, breach: Breach, nowMs: number): AlertState {
  const { name, severity, severityLabel, about, runbook } = rule
  return {
    rule: name,
    severity,
    severityLabel: severityLabel ?? severity,
    ...breach,
    ...omitUndefined({ about, runbook }),
    status: 'pending',
    sinceMs: nowMs,
    firedAtMs: null,
    resolvedAtMs: null,
  }
}

function keyOf({ name }: RuleFacts, { labels }: Breach): string {
  return JSON.stringify([name, ...Object.entries(labels).toSorted()])
}
