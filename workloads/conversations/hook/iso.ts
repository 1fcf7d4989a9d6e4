/** What the built hook has instead of src/time/iso.ts: Date#toISOString reads the time zone first, which takes 0.3 ms. */

const DAY_MS = 86_400_000
const pad = (value: number, width: number): string => String(value).padStart(width, '0')

/** The same text as Date#toISOString, for the years 1970 to 9999. */
export function toIso(ms: number): string {
  const days = Math.floor(ms / DAY_MS)
  const [year, month, day] = civil(days)
  const inDay = ms - days * DAY_MS
  const time = [3_600_000, 60_000, 1_000].map((unit, index) =>
    pad(Math.floor(inDay / unit) % (index === 0 ? 24 : 60), 2),
  )
  return `${pad(year, 4)}-${pad(month, 2)}-${pad(day, 2)}T${time.join(':')}.${pad(inDay % 1_000, 3)}Z`
}

/** Year, month and day of a number of days since 1970, in the Gregorian calendar. Years begin in March here, so that a leap day is their last. */
function civil(days: number): readonly [year: number, month: number, day: number] {
  const shifted = days + 719_468
  const era = Math.floor(shifted / 146_097)
  const dayOfEra = shifted - era * 146_097
  const yearOfEra = Math.floor(
    (dayOfEra - Math.floor(dayOfEra / 1_460) + Math.floor(dayOfEra / 36_524) - Math.floor(dayOfEra / 146_096)) / 365,
  )
  const dayOfYear = dayOfEra - (365 * yearOfEra + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100))
  const monthFromMarch = Math.floor((5 * dayOfYear + 2) / 153)
  const day = dayOfYear - Math.floor((153 * monthFromMarch + 2) / 5) + 1
  const month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
  return [yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, day]
}
