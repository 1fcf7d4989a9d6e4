/** Numbers and times for people. */
const MINUTE_MS = 60_000
const HOUR_MS = 3_600_000
const DAY_MS = 86_400_000

/** Two units at most: `850 ms`, `4.2 s`, `3 min 20 s`, `5 h 10 min`, `2 d 3 h`. */
export function duration(ms: number): string {
  if (ms < 1_000) return `${Math.max(0, Math.round(ms))} ms`
  if (ms < 10_000) return `${(Math.floor(ms / 100) / 10).toFixed(1)} s`
  if (ms < MINUTE_MS) return `${Math.floor(ms / 1_000)} s`
  if (ms < HOUR_MS) return two(ms, MINUTE_MS, 'min', 1_000, 's')
  if (ms < DAY_MS) return two(ms, HOUR_MS, 'h', MINUTE_MS, 'min')
  return two(ms, DAY_MS, 'd', HOUR_MS, 'h')
}

function two(ms: number, largeMs: number, large: string, smallMs: number, small: string): string {
  const rest = Math.floor((ms % largeMs) / smallMs)
  return `${Math.floor(ms / largeMs)} ${large}${rest === 0 ? '' : ` ${rest} ${small}`}`
}

/** The distance from now in the largest unit that fits. */
export function relative(atMs: number, nowMs: number): string {
  const ms = Math.abs(nowMs - atMs)
  const text = coarse(ms)
  if (ms < 1_000) return 'now'
  return atMs > nowMs ? `in ${text}` : `${text} ago`
}

function coarse(ms: number): string {
  if (ms < MINUTE_MS) return `${Math.floor(ms / 1_000)} s`
  if (ms < HOUR_MS) return `${Math.floor(ms / MINUTE_MS)} min`
  if (ms < DAY_MS) return `${Math.floor(ms / HOUR_MS)} h`
  return `${Math.floor(ms / DAY_MS)} d`
}

const EXACT = new Intl.DateTimeFormat(undefined, {
  dateStyle: 'medium',
  timeStyle: 'long',
})

export const exact = (atMs: number): string => EXACT.format(atMs)

/** Of the one who reads. */
export const READER_ZONE = new Intl.DateTimeFormat().resolvedOptions().timeZone

const inZones = new Map<string, Intl.DateTimeFormat | null>()

/** With its weekday, in a time zone. A server may know zones that this browser does not. */
export function exactIn(zone: string, atMs: number): string {
  const known = inZones.get(zone)
  const format = known === undefined ? formatIn(zone) : known
  inZones.set(zone, format)
  return format?.format(atMs) ?? 'not known to this browser'
}

function formatIn(zone: string): Intl.DateTimeFormat | null {
  try {
    return new Intl.DateTimeFormat(undefined, {
      ...{ weekday: 'short', year: 'numeric', month: 'short', day: 'numeric', timeZone: zone },
      ...{ hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23' },
    })
  } catch {
    return null
  }
}

const TODAY = new Intl.DateTimeFormat(undefined, {
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  hour12: false,
})

/** The time alone if it is near, otherwise with the day. */
export function timeOfDay(atMs: number, nowMs: number): string {
  return Math.abs(nowMs - atMs) < DAY_MS / 2 ? TODAY.format(atMs) : exact(atMs)
}

const MINUTES = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', hour12: false })
const DAYS = new Intl.DateTimeFormat(undefined, { month: 'short', day: 'numeric' })

/** For the axis of a chart: as exact as the distance between two labels needs. */
export function timeOnAxis(atMs: number, apartMs: number): string {
  if (apartMs >= DAY_MS) return DAYS.format(atMs)
  return (apartMs >= MINUTE_MS ? MINUTES : TODAY).format(atMs)
}

const WHOLE = new Intl.NumberFormat('en', { maximumFractionDigits: 0 })
const ONE_PLACE = new Intl.NumberFormat('en', { maximumFractionDigits: 1 })
const COMPACT = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 })

export const whole = (count: number): string => WHOLE.format(count)

/** With one decimal place where there is one. */
export const numeral = (value: number): string => ONE_PLACE.format(value)

/** Exact up to a million, then `1.2M`: a tile has room for seven characters. */
export const brief = (count: number): string => (count < 1_000_000 ? whole(count) : COMPACT.format(count))

/** `500`, `1.2K`, `100K`: for the ticks of an axis. */
export const compact = (count: number): string => COMPACT.format(count)

export function perUnit(count: number, unit: string): string {
  return `${count >= 100 ? whole(count) : ONE_PLACE.format(count)}/${unit}`
}

export const rate = (perSecond: number): string => perUnit(perSecond, 's')

/** `850 MB`, `1.2 GB`. */
export function bytes(count: number): string {
  const megabytes = count / 1e6
  return megabytes < 1_000 ? `${whole(megabytes)} MB` : `${numeral(megabytes / 1_000)} GB`
}

export function counted(count: number, one: string, many = `${one}s`): string {
  return `${whole(count)} ${count === 1 ? one : many}`
}

/** Neighbouring ULIDs share their time part, so the end tells them apart. */
export function shortId(id: string): string {
  return id.length <= 14 ? id : `${id.slice(0, 4)}…${id.slice(-6)}`
}

export interface Progress {
  /** Between 0 and 100; null when the progress is not a share. */
  readonly percent: number | null
  readonly text: string
}

/** Handlers report progress in any form; the usual ones become a bar. */
export function readProgress(value: unknown): Progress | null {
  if (value === null || value === undefined) return null
  if (typeof value === 'number') return ofPercent(value)
  if (typeof value === 'string') return { percent: null, text: value }
  if (typeof value !== 'object') return { percent: null, text: String(value) }
  const { percent, done, total, text } = { percent: null, done: null, total: null, text: null, ...value }
  const said = typeof text === 'string' ? text : null
  if (typeof percent === 'number') return { ...ofPercent(percent), ...(said !== null && { text: said }) }
  if (typeof done === 'number' && typeof total === 'number' && total > 0) {
    return { percent: bounded((done / total) * 100), text: said ?? `${whole(done)} of ${whole(total)}` }
  }
  return { percent: null, text: said ?? JSON.stringify(value) }
}

function ofPercent(percent: number): Progress {
  return { percent: bounded(percent), text: `${Math.round(percent)} %` }
}

const bounded = (percent: number): number => Math.min(100, Math.max(0, percent))
