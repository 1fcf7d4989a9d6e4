import { OptionError } from '../errors.ts'

/** Milliseconds, or a number with a unit: '250ms' '30s' '5m' '1h' '7d'. */
export type Duration = number | `${number}${'ms' | 's' | 'm' | 'h' | 'd'}`

const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** A century. Now plus any duration then stays far within the years that stored times can express. */
export const DURATION_MS_MAX = 36_500 * 86_400_000

/** Whole milliseconds. `name` is the option's name as the user wrote it, so the error can point at it. */
export function parseDurationMs(duration: Duration | string, name: string): number {
  const ms = Math.round(toMs(duration, name))
  if (ms <= DURATION_MS_MAX) return ms
  throw new OptionError(`'${name}' is longer than ${DURATION_MS_MAX / 86_400_000} days; give a shorter duration`)
}

function toMs(duration: Duration | string, name: string): number {
  if (typeof duration === 'number') {
    if (Number.isFinite(duration) && duration >= 0) return duration
    throw new OptionError(`'${name}' is ${duration}; give milliseconds of 0 or more, or a duration such as '30s'`)
  }
  const match = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(duration)
  const unitMs = UNIT_MS[match?.[2] ?? '']
  if (match === null || unitMs === undefined) {
    throw new OptionError(`'${name}' is '${duration}'; give a duration such as '250ms', '30s', '5m', '1h' or '7d'`)
  }
  return Number(match[1]) * unitMs
}

const UNITS = Object.entries(UNIT_MS)
  .filter(([unit]) => unit !== 'ms')
  .toReversed()

/** A duration in the largest unit that it fills: 850 ms, 12s, 5m, 3h, 2d. */
export function formatDuration(ms: number): string {
  if (Number.isNaN(ms)) return '?'
  for (const [unit, unitMs] of UNITS) if (ms >= unitMs) return `${Math.floor(ms / unitMs)}${unit}`
  return `${Math.max(0, Math.round(ms))} ms`
}

/** The same duration as `parseDurationMs` reads it: 90s where `formatDuration` would say 1m. */
export function exactDuration(ms: number): string {
  for (const [unit, unitMs] of UNITS) if (ms >= unitMs && ms % unitMs === 0) return `${ms / unitMs}${unit}`
  return `${ms}ms`
}
