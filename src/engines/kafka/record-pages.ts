/**
 * Records of several partitions as one list, newest first. A record stands at the latest time that it, or one before it in
 * its partition, has. So times never go back within a partition, whatever the clocks of its producers say, and the broker can
 * be asked where a time begins: it answers with the first record that is as new, which is the first that stands there.
 */
import { type LogRecord, nameOf, type PartitionName } from './record.ts'

export interface LogSpan extends PartitionName {
  readonly start: number
  readonly end: number
}

export interface TimedLog {
  /** By the name of the partition, the first offset with a record of this time or a later one; missing where there is none. */
  offsetsAt(places: readonly PartitionName[], timeMs: number): Promise<ReadonlyMap<string, number>>
  /** By the name of the partition, the latest time of a record; missing where it has none. */
  newest(places: readonly PartitionName[]): Promise<ReadonlyMap<string, number>>
  /** Every record of the range, in order. */
  read(place: PartitionName, from: number, to: number): Promise<readonly LogRecord[]>
}

export interface RecordPage {
  readonly limit: number
  /** The last record of the page before. */
  readonly before?: LogRecord
}

/** How fast the window into the past grows while it has too few records. */
const WIDER = 16
/** A window may have this many records more than are asked for. */
const SLACK = 100
/** Offsets that are read at once backwards; some may have no record. */
const STEP = 100

/** What is still to be listed: of each partition the records below a bound, all of which stand before `belowMs`. */
interface Rest {
  readonly spans: readonly LogSpan[]
  readonly belowMs: number
}

/** Records of a window of time, up to where the rest ends. */
interface Window {
  readonly fromMs: number
  /** Apart from fewer records than are asked for, all stand at `fromMs` itself. */
  readonly isInstant: boolean
}

interface StandingRecord {
  readonly record: LogRecord
  readonly standsAtMs: number
}

export async function newestRecords(
  log: TimedLog,
  spans: readonly LogSpan[],
  { limit, before }: RecordPage,
): Promise<readonly LogRecord[]> {
  let rest = before === undefined ? await wholeOf(log, spans) : await restBelow(log, spans, before)
  const found: LogRecord[] = []
  while (found.length < limit && rest.spans.length > 0) {
    const needed = limit - found.length
    const window = await windowWith(log, rest, needed)
    const begins = await beginsOf(log, rest.spans, window.fromMs)
    const standing: StandingRecord[] = []
    for (const span of rest.spans) {
      const part = { ...span, start: begins.get(nameOf(span)) ?? span.end }
      const records = await lastOf(log, part, window.isInstant ? needed : Number.POSITIVE_INFINITY)
      standing.push(...stand(records, window.fromMs))
    }
    found.push(...standing.sort(newestFirst).map(({ record }) => record))
    rest = { spans: cutTo(rest.spans, begins), belowMs: window.fromMs }
  }
  return found.slice(0, limit)
}

async function wholeOf(log: TimedLog, spans: readonly LogSpan[]): Promise<Rest> {
  const open = spans.filter(({ start, end }) => end > start)
  const newest = await log.newest(open)
  return { spans: open, belowMs: Math.max(0, ...newest.values()) + 1 }
}

/** Of records at one time, those of the first partition come first: of the partitions after it, that time is still to come. */
async function restBelow(log: TimedLog, spans: readonly LogSpan[], before: LogRecord): Promise<Rest> {
  const atMs = await standsAt(log, before)
  const [begins, nexts] = await Promise.all([log.offsetsAt(spans, atMs), log.offsetsAt(spans, atMs + 1)])
  const ends = new Map(
    spans.map((span) => {
      const order = comparePlaces(span, before)
      const at = order === 0 ? Number(before.offset) : (order < 0 ? begins : nexts).get(nameOf(span))
      return [nameOf(span), Math.min(span.end, at ?? span.end)]
    }),
  )
  return { spans: cutTo(spans, ends), belowMs: atMs + 1 }
}

function cutTo(spans: readonly LogSpan[], ends: ReadonlyMap<string, number>): readonly LogSpan[] {
  return spans
    .map((span) => ({ ...span, end: ends.get(nameOf(span)) ?? span.end }))
    .filter(({ start, end }) => end > start)
}

/** Nearly always its own time, which one question tells. */
async function standsAt(log: TimedLog, record: LogRecord): Promise<number> {
  const isReached = async (timeMs: number): Promise<boolean> => {
    const first = (await log.offsetsAt([record], timeMs)).get(nameOf(record))
    return first !== undefined && first <= Number(record.offset)
  }
  let fromMs = record.timestampMs
  if (!(await isReached(fromMs + 1))) return fromMs
  let belowMs = ((await log.newest([record])).get(nameOf(record)) ?? fromMs) + 1
  while (belowMs - fromMs > 1) {
    const middleMs = Math.floor((fromMs + belowMs) / 2)
    if (await isReached(middleMs)) fromMs = middleMs
    else belowMs = middleMs
  }
  return fromMs
}

/** The latest time from which on there are enough, or the beginning. */
async function windowWith(log: TimedLog, { spans, belowMs }: Rest, needed: number): Promise<Window> {
  const countFrom = async (timeMs: number): Promise<number> => {
    const begins = await beginsOf(log, spans, timeMs)
    return spans.reduce((sum, span) => sum + span.end - (begins.get(nameOf(span)) ?? span.end), 0)
  }
  let [fromMs, tooLateMs] = [belowMs, belowMs]
  let count = 0
  for (let width = 1; count < needed; width *= WIDER) {
    // What has no time, or one from before 1970, is the oldest.
    if (fromMs === 0) return { fromMs: Number.NEGATIVE_INFINITY, isInstant: true }
    tooLateMs = fromMs
    fromMs = Math.max(0, belowMs - width)
    count = await countFrom(fromMs)
  }
  while (count > needed + SLACK && tooLateMs - fromMs > 1) {
    const middleMs = Math.floor((fromMs + tooLateMs) / 2)
    const found = await countFrom(middleMs)
    if (found < needed) tooLateMs = middleMs
    else [fromMs, count] = [middleMs, found]
  }
  return { fromMs, isInstant: tooLateMs - fromMs === 1 }
}

/** Within the spans. */
async function beginsOf(
  log: TimedLog,
  spans: readonly LogSpan[],
  fromMs: number,
): Promise<ReadonlyMap<string, number>> {
  const found = Number.isFinite(fromMs) ? await log.offsetsAt(spans, fromMs) : null
  return new Map(
    spans.map((span) => {
      const at = found === null ? span.start : (found.get(nameOf(span)) ?? span.end)
      return [nameOf(span), Math.min(span.end, Math.max(span.start, at))]
    }),
  )
}

/** In order. Read backwards where not all are wanted, because some offsets have no record. */
async function lastOf(log: TimedLog, span: LogSpan, max: number): Promise<readonly LogRecord[]> {
  const step = Number.isFinite(max) ? Math.max(STEP, max) : span.end - span.start
  let records: readonly LogRecord[] = []
  for (let to = span.end; to > span.start && records.length < max; ) {
    const from = Math.max(span.start, to - step)
    records = [...(await log.read(span, from, to)), ...records]
    to = from
  }
  return records.length > max ? records.slice(-max) : records
}

function stand(records: readonly LogRecord[], fromMs: number): readonly StandingRecord[] {
  let standsAtMs = fromMs
  return records.map((record) => {
    standsAtMs = Math.max(standsAtMs, record.timestampMs)
    return { record, standsAtMs }
  })
}

function newestFirst(one: StandingRecord, other: StandingRecord): number {
  if (one.standsAtMs !== other.standsAtMs) return other.standsAtMs - one.standsAtMs
  return comparePlaces(one.record, other.record) || Number(other.record.offset - one.record.offset)
}

export function comparePlaces(one: PartitionName, other: PartitionName): number {
  if (one.topic !== other.topic) return one.topic < other.topic ? -1 : 1
  return one.partition - other.partition
}
