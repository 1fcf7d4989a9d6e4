import type { Engine } from '../../src/engine/engine.ts'
import { Events } from '../../src/events.ts'
import type { Log } from '../../src/job/definition.ts'
import { refuseUnknown } from '../../src/job/known-options.ts'
import { startAlerting } from '../../src/observe/alerting/alerting.ts'
import { figureRules } from '../../src/observe/alerting/figure-rules.ts'
import type { Alerter } from '../../src/observe/alerts.ts'
import type { Clock } from '../../src/time/clock.ts'

/** Document B's figures: more than ten dead letters, looked for every five minutes. */
export const DEAD_LETTERS_MAX = 10
export const MONITOR_EVERY_MS = 300_000
/** An alert that nobody has acted on is repeated, but not at every look (X089). */
export const REPEAT_MS = 3_600_000

export interface DeadLetterMonitorOptions {
  readonly engine: Engine
  readonly alerter: Alerter
  readonly clock?: Clock
  readonly log?: Log
}

/**
 * Looks at the number of dead letters every five minutes and raises an alert while it is above ten: when it gets there,
 * and then once an hour. A look or an alert that fails is logged, and the next look comes all the same. Returns the end
 * of it. It is `startAlerting` with one rule, for programs that have an alerter.
 */
export function monitorDeadLetters(options: DeadLetterMonitorOptions): () => void {
  refuseUnknown(options, { engine: true, alerter: true, clock: true, log: true }, 'monitorDeadLetters')
  const { engine, alerter, ...others } = options
  const rules = figureRules({ deadLetterCount: DEAD_LETTERS_MAX }).filter(({ name }) => name === 'dead_letter_count')
  const alerting = startAlerting(
    { engine, events: new Events() },
    {
      ...others,
      rules,
      every: MONITOR_EVERY_MS,
      repeat: REPEAT_MS,
      sinks: [({ status, alert }) => (status === 'firing' ? alerter.send(pileAlert(alert.value)) : undefined)],
    },
  )
  return () => void alerting.stop()
}

function pileAlert(count: number | null) {
  return {
    severity: 'high',
    title: 'Dead letters are piling up',
    message: `${count} dead letters, more than ${DEAD_LETTERS_MAX}; look with 'millrace dead list --groups'`,
    tags: { metric: 'dead_letter_count', value: String(count), threshold: String(DEAD_LETTERS_MAX) },
  } as const
}
