import type { Severity } from '../../events.ts'
import type { Duration } from '../../time/duration.ts'
import type { Health } from '../health.ts'
import type { Found } from '../observed-mill.ts'
import type { Stats } from '../stats/stats.ts'

/** What the rules look at, read at one moment. A source that cannot be read does not affect the others. */
export interface Sample<Reading = unknown> {
  readonly atMs: number
  readonly stats: Found<Stats>
  /** Each check says so when it failed. */
  readonly health: Health
  /** What the `watch` option read; null without one. */
  readonly reading: Reading | null
}

/** One violation of a rule. */
export interface Breach {
  /** Tells several breaches of one rule apart. */
  readonly labels: Readonly<Record<string, string>>
  readonly value: number | null
  readonly threshold: number | null
  /** Of the value and the threshold; default: a number. */
  readonly unit?: 'ms' | 'share'
  readonly text: string
}

/** The page of the dashboard that shows the cause of an alert. */
export const ALERT_SUBJECTS = ['jobs', 'dead-letters', 'queues', 'workers', 'schedules', 'topics'] as const
export type AlertSubject = (typeof ALERT_SUBJECTS)[number]

export interface AlertRule<Reading = unknown> {
  /** Unique among the rules of one `startAlerting`. */
  readonly name: string
  readonly severity: Severity
  /** What your pager calls the severity; default: the severity. */
  readonly severityLabel?: string
  /** What it is about: the dashboard links to it. A label `type`, `topic` or `job` narrows it down. */
  readonly about?: AlertSubject
  /** Where it is written what to do: a URL, or a path as text. Alerts of this rule carry it. */
  readonly runbook?: string
  /** How long it must hold before the alert fires; default: at once. */
  readonly for?: Duration
  /** Every breach now. Null: unknown, so alerts of this rule stay as they are. */
  readonly evaluate: (sample: Sample<Reading>) => readonly Breach[] | null
}
