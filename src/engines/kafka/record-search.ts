import { EngineError } from '../../errors.ts'
import { jobIdOf } from './job-record.ts'
import type { LogRecord } from './record.ts'
import { nameOf } from './record.ts'
import type { LogSpan, TimedLog } from './record-pages.ts'

/** The time in an id that Millrace has given: 48 bits, ten letters of Crockford's base 32. Null for any other id. */
export function timeOfId(id: string): number | null {
  if (!/^[0-7][0-9A-HJKMNP-TV-Z]{25}$/.test(id)) return null
  return [...id.slice(0, 10)].reduce((ms, letter) => ms * 32 + '0123456789ABCDEFGHJKMNPQRSTVWXYZ'.indexOf(letter), 0)
}

/** An id is made before its record is written, and the clocks of two machines may differ. */
const EARLIER_MS = 2_000
/** Records that are read in search of one, over all partitions. */
export const SEARCHED_MAX = 20_000
const STEP = 500

/**
 * The first record of a job that was written from this time on. A log cannot be asked for an id, so it reads on from there,
 * a step of each partition in turn. Null when there is none; rejects when it has read as much as it may.
 */
export async function findFrom(
  log: TimedLog,
  spans: readonly LogSpan[],
  { id, timeMs }: { readonly id: string; readonly timeMs: number },
): Promise<LogRecord | null> {
  const begins = await log.offsetsAt(spans, Math.max(0, timeMs - EARLIER_MS))
  const nexts = new Map(spans.map((span) => [span, Math.max(span.start, begins.get(nameOf(span)) ?? span.end)]))
  for (let searched = 0; ; ) {
    const open = spans.filter((span) => (nexts.get(span) ?? span.end) < span.end)
    if (open.length === 0) return null
    for (const span of open) {
      if (searched >= SEARCHED_MAX) throw notFound(id)
      const from = nexts.get(span) ?? span.end
      const to = Math.min(span.end, from + STEP)
      const records = await log.read(span, from, to)
      const found = records.find((record) => jobIdOf(record) === id)
      if (found !== undefined) return found
      searched += to - from
      nexts.set(span, to)
    }
  }
}

function notFound(id: string): EngineError {
  return new EngineError(
    'ERR_STORAGE_BUSY',
    `job ${id} is not among the ${SEARCHED_MAX} records that were written from its time on, and a log cannot be asked for an id; if you know where it stands, give topic/partition/offset`,
  )
}
