import { ALARMS, type Alarm, type AlarmName, type AlarmRules, evaluateAlarms } from '../watch/alarms.ts'
import type { Reading } from '../watch/watch.ts'
import type { AlertRule } from './rule.ts'

/**
 * Document D's rules over what a `Watch` reads: workers, lags and dead letters by topic. The conditions are those of
 * `evaluateAlarms`.
 *
 * @example
 * const alerting = startAlerting(mill, { rules: watchRules({ lagLimits, isFinancial }), watch, every: '15s' })
 */
export function watchRules(rules: AlarmRules): readonly AlertRule[] {
  // All rules look at the same reading, one after the other.
  const evaluated = new WeakMap<Reading, readonly Alarm[]>()
  const alarmsOf = (reading: Reading): readonly Alarm[] => {
    const alarms = evaluated.get(reading) ?? evaluateAlarms(reading, rules)
    evaluated.set(reading, alarms)
    return alarms
  }
  // The keys of the table are the names of the alarms.
  return (Object.keys(ALARMS) as AlarmName[]).map((name) => {
    const { severity: word } = ALARMS[name]
    return {
      name,
      word,
      severity: word === 'CRITICAL' ? 'critical' : 'warning',
      evaluate({ reading }) {
        if (reading === null || !isKnown(name, reading)) return null
        const held = alarmsOf(reading).filter(({ alarm }) => alarm === name)
        return held.map(({ labels, text }) => ({ labels, text, value: null, threshold: null }))
      },
    }
  })
}

/** X170: what cannot be read neither raises nor ends an alert, except that it cannot be read. */
function isKnown(name: AlarmName, reading: Reading): boolean {
  const { about } = ALARMS[name]
  return about === 'presence' || reading[about].ok
}
