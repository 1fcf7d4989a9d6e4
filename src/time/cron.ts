import { OptionError } from '../errors.ts'

/**
 * A time table in cron's notation: five fields (minute hour day month weekday), or six with the second first.
 *
 * With both a day and a weekday given, either is enough: `0 0 13 * FRI` is every 13th and every Friday. A field that starts
 * with `*` counts as not given.
 *
 * Daylight saving, as cron has always meant it: a schedule with fixed hours runs once a day. A time that the clocks
 * skip runs at the moment they jump, also where midnight is what is skipped; a time that they repeat runs at its first
 * occurrence. A schedule whose hour field starts with `*` counts real time and simply goes on.
 */
export interface Cron {
  /** The first run strictly after `afterMs`, or null when there is none within eight years. */
  next(afterMs: number): number | null
}

interface Fields {
  readonly seconds: readonly number[]
  readonly minutes: ReadonlySet<number>
  readonly hours: ReadonlySet<number>
  readonly days: ReadonlySet<number>
  readonly months: ReadonlySet<number>
  readonly weekdays: ReadonlySet<number>
  /** With both a day and a weekday given, either is enough. */
  readonly eitherDay: boolean
  readonly hasFixedHours: boolean
}

/** Clocks change on quarters of an hour, and offsets are quarters too, so within a block nothing changes but minutes. */
const BLOCK_MS = 900_000
const DAY_MS = 86_400_000
/** Clocks jump by less than this, so a day or month that does not match can be left out up to here. */
const JUMP_MS = 3 * 3_600_000
/** A 29th of February comes at the latest after eight years. */
const HORIZON_MS = 8 * 366 * DAY_MS

/**
 * @example
 * parseCron('0 0 3 * * *', 'Europe/Berlin').next(0)   // the first 03:00 in Berlin after 1970 began
 */
export function parseCron(text: string, zone = 'UTC'): Cron {
  const fields = parseFields(text)
  const offsetAt = zoneOffsets(zone)
  return { next: (afterMs) => nextRun(fields, offsetAt, afterMs) }
}

const PREVIEW_COUNT_MAX = 1_000

export function checkPreviewCount(count: number): void {
  if (Number.isInteger(count) && count >= 1 && count <= PREVIEW_COUNT_MAX) return
  throw new OptionError(`'count' is ${count}; give a whole number from 1 to ${PREVIEW_COUNT_MAX}`)
}

/** The next runs, for a person to look at before trusting a schedule. */
export function previewCron(cron: Cron, fromMs: number, count = 10): readonly number[] {
  checkPreviewCount(count)
  const runs: number[] = []
  for (let atMs = cron.next(fromMs); atMs !== null && runs.length < count; atMs = cron.next(atMs)) runs.push(atMs)
  return runs
}

type OffsetAt = (utcMs: number) => number

function nextRun(fields: Fields, offsetAt: OffsetAt, afterMs: number): number | null {
  let blockMs = Math.floor(afterMs / BLOCK_MS) * BLOCK_MS
  const untilMs = afterMs + HORIZON_MS
  while (blockMs < untilMs) {
    const offsetMs = offsetAt(blockMs)
    const skippedMs = offsetMs - offsetAt(blockMs - BLOCK_MS)
    if (blockMs > afterMs && fields.hasFixedHours && skippedMs > 0) {
      if (hasRunWithin(fields, blockMs + offsetMs - skippedMs, skippedMs)) return blockMs
    }
    const localMs = blockMs + offsetMs
    if (!matchesDay(fields, localMs)) {
      blockMs += Math.max(BLOCK_MS, floorToBlock(leftOut(fields, localMs) - JUMP_MS))
      continue
    }
    const isRepeated = fields.hasFixedHours && isSecondOccurrence(offsetAt, blockMs, offsetMs)
    const runMs = isRepeated ? null : firstInBlock(fields, localMs, afterMs + offsetMs)
    if (runMs !== null) return runMs - offsetMs
    blockMs += BLOCK_MS
  }
  return null
}

/** Whether the local time of this block was there before, under the offset that applied until the clocks went back. */
function isSecondOccurrence(offsetAt: OffsetAt, blockMs: number, offsetMs: number): boolean {
  const earlierOffsetMs = offsetAt(blockMs - JUMP_MS)
  if (earlierOffsetMs <= offsetMs) return false
  const earlierMs = blockMs + offsetMs - earlierOffsetMs
  return offsetAt(earlierMs) === earlierOffsetMs
}

/** The first run in the block that begins at this local time, strictly after another local time. */
function firstInBlock(fields: Fields, localMs: number, afterLocalMs: number): number | null {
  const start = new Date(localMs)
  if (!fields.hours.has(start.getUTCHours())) return null
  for (let minuteMs = localMs; minuteMs < localMs + BLOCK_MS; minuteMs += 60_000) {
    if (!fields.minutes.has(new Date(minuteMs).getUTCMinutes())) continue
    for (const second of fields.seconds) if (minuteMs + second * 1_000 > afterLocalMs) return minuteMs + second * 1_000
  }
  return null
}

function hasRunWithin(fields: Fields, fromLocalMs: number, lengthMs: number): boolean {
  for (let localMs = fromLocalMs; localMs < fromLocalMs + lengthMs; localMs += BLOCK_MS) {
    if (matchesDay(fields, localMs) && firstInBlock(fields, localMs, localMs - 1) !== null) return true
  }
  return false
}

function matchesDay(fields: Fields, localMs: number): boolean {
  const date = new Date(localMs)
  if (!fields.months.has(date.getUTCMonth() + 1)) return false
  const day = fields.days.has(date.getUTCDate())
  const weekday = fields.weekdays.has(date.getUTCDay())
  return fields.eitherDay ? day || weekday : day && weekday
}

/** How long nothing matches from a local time whose day does not: to the end of the month, or of the day. */
function leftOut(fields: Fields, localMs: number): number {
  const date = new Date(localMs)
  if (fields.months.has(date.getUTCMonth() + 1)) return DAY_MS - modulo(localMs, DAY_MS)
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1) - localMs
}

function floorToBlock(ms: number): number {
  return Math.floor(ms / BLOCK_MS) * BLOCK_MS
}

function modulo(value: number, divisor: number): number {
  return ((value % divisor) + divisor) % divisor
}

const MONTHS = ['JAN', 'FEB', 'MAR', 'APR', 'MAY', 'JUN', 'JUL', 'AUG', 'SEP', 'OCT', 'NOV', 'DEC']
const WEEKDAYS = ['SUN', 'MON', 'TUE', 'WED', 'THU', 'FRI', 'SAT']

function parseFields(text: string): Fields {
  const parts = text.trim().split(/\s+/)
  if (parts.length !== 5 && parts.length !== 6) {
    throw new OptionError(
      `'${text}' has ${parts.length} fields; give minute hour day month weekday, or six with the second first`,
    )
  }
  const [second = '0', minute = '', hour = '', day = '', month = '', weekday = ''] =
    parts.length === 5 ? ['0', ...parts] : parts
  const days = parseField(day, { name: 'day', min: 1, max: 31 })
  const months = parseField(month, { name: 'month', min: 1, max: 12, words: MONTHS, firstWord: 1 })
  const eitherDay = !isOpen(day) && !isOpen(weekday)
  if (!eitherDay && !isEverDay(days, months)) {
    throw new OptionError(`'${text}' never runs: no month of '${month}' has a day of '${day}'; give a day that exists`)
  }
  const weekdays = parseField(weekday, { name: 'weekday', min: 0, max: 7, words: WEEKDAYS, firstWord: 0 })
  return {
    seconds: [...parseField(second, { name: 'second', min: 0, max: 59 })].sort((one, other) => one - other),
    minutes: parseField(minute, { name: 'minute', min: 0, max: 59 }),
    hours: parseField(hour, { name: 'hour', min: 0, max: 23 }),
    ...{ days, months },
    weekdays: new Set([...weekdays].map((value) => value % 7)),
    eitherDay,
    hasFixedHours: !isOpen(hour),
  }
}

const LONGEST = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]

/** Whether one of the days is ever a day of one of the months. */
function isEverDay(days: ReadonlySet<number>, months: ReadonlySet<number>): boolean {
  const first = Math.min(...days)
  return [...months].some((month) => first <= (LONGEST[month - 1] ?? 0))
}

function isOpen(field: string): boolean {
  return field.startsWith('*') || field === '?'
}

interface Range {
  readonly name: string
  readonly min: number
  readonly max: number
  readonly words?: readonly string[]
  readonly firstWord?: number
}

function parseField(field: string, range: Range): ReadonlySet<number> {
  const values = new Set<number>()
  for (const part of field.split(',')) {
    const [span = '', step, ...rest] = part.split('/')
    if (rest.length > 0) refuse(field, range)
    const [from, to] = parseSpan(span, range, step !== undefined)
    const stride = step === undefined ? 1 : Number(step)
    if (step === '' || !Number.isInteger(stride) || stride < 1) refuse(field, range)
    if (step !== undefined && stride > range.max - range.min) {
      throw new OptionError(
        `'${field}' has a step of ${step}, but a ${range.name} goes from ${range.min} to ${range.max}; give a smaller step, or the one value that is meant`,
      )
    }
    for (let value = from; value <= to; value += stride) values.add(value)
  }
  return values
}

/** `5/15` means from 5 to the end in steps of 15. */
function parseSpan(span: string, range: Range, hasStep: boolean): readonly [from: number, to: number] {
  if (span === '*' || span === '?') return [range.min, range.max === 7 ? 6 : range.max]
  const ends = span.split('-').map((end) => parseValue(end, range))
  const [from = Number.NaN, to = hasStep ? range.max : from] = ends
  if (ends.length > 2 || !(from >= range.min && to <= range.max && from <= to)) refuse(span, range)
  return [from, to]
}

function parseValue(text: string, { words = [], firstWord = 0 }: Range): number {
  const word = words.indexOf(text.toUpperCase())
  if (word >= 0) return word + firstWord
  return /^\d+$/.test(text) ? Number(text) : Number.NaN
}

function refuse(field: string, { name, min, max }: Range): never {
  throw new OptionError(
    `'${field}' is no ${name} of a schedule; give numbers from ${min} to ${max}, as 5, 1-5, 1,15 or */10`,
  )
}

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
