import type { Engine } from '../../src/engine/engine.ts'
import type { Log } from '../../src/job/definition.ts'
import type { Alerter } from '../../src/observe/alerts.ts'
import { silentLog } from '../../src/observe/log.ts'
import { type Clock, systemClock } from '../../src/time/clock.ts'

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
 * and then once an hour. A look or an alert that fails is logged, and the next look comes all the same. Returns the end of it.
 */
export function monitorDeadLetters(options: DeadLetterMonitorOptions): () => void {
  const { engine, alerter, clock = systemClock, log = silentLog } = options
  let alertedAtMs: number | null = null
  let isOver = false
  let cancel = (): void => {}

  const look = async (): Promise<void> => {
    const count = Object.values(await engine.counts()).reduce((sum, { dead }) => sum + dead, 0)
    if (count <= DEAD_LETTERS_MAX) {
      alertedAtMs = null
      return
    }
    const nowMs = clock.monotonicMs()
    if (alertedAtMs !== null && nowMs - alertedAtMs < REPEAT_MS) return
    alertedAtMs = nowMs
    await alerter.send({
      severity: 'high',
      title: 'Dead letters are piling up',
      message: `${count} dead letters, more than ${DEAD_LETTERS_MAX}; look with 'millrace dead list --groups'`,
      tags: { metric: 'dead_letter_count', value: String(count), threshold: String(DEAD_LETTERS_MAX) },
    })
  }
  const arm = (): void => {
    if (isOver) return
    cancel = clock.after(MONITOR_EVERY_MS, () => {
      look()
        .catch((error) => log.error('The dead letters could not be looked at', { error: String(error) }))
        .finally(arm)
    })
  }
  arm()
  return () => {
    isOver = true
    cancel()
  }
}
