import type { Engine } from '../../../src/engine/engine.ts'
import { Events } from '../../../src/events.ts'
import type { Log } from '../../../src/job/definition.ts'
import { omitUndefined, refuseUnknown } from '../../../src/job/known-options.ts'
import { startAlerting } from '../../../src/observe/alerts/alerting.ts'
import type { Alerter, AlertMessage } from '../../../src/observe/alerts/dead-letter-alerts.ts'
import type { AlertState } from '../../../src/observe/alerts/evaluator.ts'
import type { Clock } from '../../../src/time/clock.ts'
import { conversationRules } from './alert-rules.ts'

/** The pipeline's limits: more than ten dead letters, checked every five minutes. */
export const DEAD_LETTERS_MAX = 10
export const MONITOR_EVERY_MS = 300_000
/** An alert that still holds is repeated, but not at every check. */
export const REPEAT_MS = 3_600_000

export interface DeadLetterMonitorOptions {
  readonly engine: Engine
  readonly alerter: Alerter
  readonly clock?: Clock
  readonly log?: Log
}

/**
 * Counts dead letters every five minutes and alerts while there are more than ten: at once, then every hour. A check or an
 * alert that fails is logged. Returns the function that stops it. It is `startAlerting` with one rule, for programs that
 * have an alerter.
 */
export function monitorDeadLetters(options: DeadLetterMonitorOptions): () => void {
  refuseUnknown(options, { engine: true, alerter: true, clock: true, log: true }, 'monitorDeadLetters')
  const { engine, alerter, ...others } = options
  const rules = conversationRules({ deadLetterCount: DEAD_LETTERS_MAX }).filter(
    ({ name }) => name === 'dead_letter_count',
  )
  const alerting = startAlerting(
    { engine, events: new Events() },
    {
      ...others,
      rules,
      every: MONITOR_EVERY_MS,
      repeat: REPEAT_MS,
      sinks: [({ status, alert }) => (status === 'firing' ? alerter.send(pileAlert(alert)) : undefined)],
    },
  )
  return () => void alerting.stop()
}

function pileAlert({ value: count, sinceMs, runbook }: AlertState): AlertMessage {
  return {
    rule: 'dead_letter_count',
    severity: 'error',
    severityLabel: 'high',
    title: 'Dead letters are piling up',
    text: `${count} dead letters, more than ${DEAD_LETTERS_MAX}; look with 'millrace dead list --groups'`,
    labels: { metric: 'dead_letter_count', value: String(count), threshold: String(DEAD_LETTERS_MAX) },
    value: count,
    sinceMs,
    ...omitUndefined({ runbook }),
  }
}
