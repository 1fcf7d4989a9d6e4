import { OptionError } from '../errors.ts'

const DAY_MS = 86_400_000
/** Days remembered per zone: more than a schedule looks at in one step. */
const DAYS_KEPT = 64

/**
 * How far a zone's clocks are ahead of UTC at an instant, in milliseconds. Asking Intl takes microseconds, so days at
 * whose ends the offset is the same, nearly all of them, are asked about once: no zone changes twice within a day.
 */
export function zoneOffsets(zone: string): (utcMs: number) => number {
  if (zone === 'UTC') return () => 0
  const format = formatFor(zone)
  const days = new Map<number, number | 'changes'>()
  return (utcMs) => {
    const day = Math.floor(utcMs / DAY_MS)
    const known = days.get(day) ?? readDay(format, day)
    if (days.size >= DAYS_KEPT) days.clear()
    days.set(day, known)
    return known === 'changes' ? readOffset(format, utcMs) : known
  }
}

function readDay(format: Intl.DateTimeFormat, day: number): number | 'changes' {
  const offsetMs = readOffset(format, day * DAY_MS)
  return offsetMs === readOffset(format, (day + 1) * DAY_MS) ? offsetMs : 'changes'
}

function formatFor(zone: string): Intl.DateTimeFormat {
  const numeric = 'numeric'
  try {
    return new Intl.DateTimeFormat('en-US', {
      timeZone: zone,
      hourCycle: 'h23',
      year: numeric,
      month: numeric,
      day: numeric,
      hour: numeric,
      minute: numeric,
      second: numeric,
    })
  } catch (error) {
    throw new OptionError(`'${zone}' is no time zone that this Node knows; give one such as 'Europe/Berlin' or 'UTC'`, {
      cause: error,
    })
  }
}

function readOffset(format: Intl.DateTimeFormat, utcMs: number): number {
  const parts = new Map(format.formatToParts(utcMs).map(({ type, value }) => [type, Number(value)]))
  const part = (name: Intl.DateTimeFormatPartTypes): number => parts.get(name) ?? 0
  const localMs = Date.UTC(part('year'), part('month') - 1, part('day'), part('hour'), part('minute'), part('second'))
  return localMs - Math.floor(utcMs / 1_000) * 1_000
}
