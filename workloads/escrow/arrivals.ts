import type { Events } from '../../src/events.ts'
import type { Log } from '../../src/job/definition.ts'
import type { Alerting } from '../../src/observe/index.ts'
import { type Alarm, type ArrivalOptions, attachArrivalAlarms } from './alarms.ts'

/**
 * Tells of every dead letter at once: the rules are evaluated when a worker of this process writes one, and a letter whose
 * alert fires already gets a line of the log.
 */
export function tellArrivals(
  alerting: Alerting,
  options: Omit<ArrivalOptions, 'send'> & { readonly events: Events; readonly log: Log },
): Alerting {
  const { events, log, dlqTopicOf, isFinancial } = options
  const isFiring = ({ alarm, labels }: Alarm): boolean =>
    alerting
      .current()
      .some(({ rule, status, labels: { topic } }) => rule === alarm && status === 'firing' && topic === labels.topic)
  const send = async (alarm: Alarm): Promise<void> => {
    const wasFiring = isFiring(alarm)
    // One that was under way may have looked before the letter was there.
    for (let tries = 0; tries < 2 && !isFiring(alarm); tries += 1) await alerting.evaluate()
    if (!wasFiring && isFiring(alarm)) return
    const { alarm: name, severity, labels, text } = alarm
    const tell = severity === 'critical' ? log.error : log.warn
    tell.call(log, `Alert ${name}: ${text}`, { alert: name, severity, labels })
  }
  const detach = attachArrivalAlarms(events, { dlqTopicOf, isFinancial, send })
  return {
    current: () => alerting.current(),
    evaluate: () => alerting.evaluate(),
    stop() {
      detach()
      return alerting.stop()
    },
  }
}
