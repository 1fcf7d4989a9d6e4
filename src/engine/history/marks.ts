/** What happened beside the jobs and explains their charts: workers that start with a version, alerts. */
import { randomUUID } from 'node:crypto'
import { bodyFields, type Records } from '../records.ts'
import { DAY_MS, MARKS } from './resolutions.ts'

export const MARK_KINDS = ['deploy', 'alert', 'resolved'] as const
export type MarkKind = (typeof MARK_KINDS)[number]

export interface Mark {
  readonly atMs: number
  readonly kind: MarkKind
  readonly text: string
  /** The type that it is about; null for all. */
  readonly type: string | null
  /** Two marks with one key are one: several processes may see the same. */
  readonly key: string
}

interface Day {
  readonly fromMs: number
  readonly marks: readonly Mark[]
  /** How many there was no room for. */
  readonly left: number
}

const TEXT_MAX = 200
/** Another process may add a mark between a read and a save, but hardly this often in a row. */
const TRIES = 10
const TTL_MS = MARKS.records * DAY_MS

/** Adds those that are not there yet. Marks that a day has no room for are counted. */
export async function addMarks(records: Records, marks: readonly Mark[]): Promise<void> {
  const byDay = Map.groupBy(marks, ({ atMs }) => Math.floor(atMs / DAY_MS) * DAY_MS)
  for (const [fromMs, ofDay] of byDay) await addToDay(records, fromMs, ofDay)
}

async function addToDay(records: Records, fromMs: number, marks: readonly Mark[]): Promise<void> {
  const name = String(Math.round(fromMs / DAY_MS) % MARKS.records).padStart(3, '0')
  for (let tries = 0; tries < TRIES; tries += 1) {
    const stored = (await records.list('mark')).find((record) => record.name === name) ?? null
    const before = stored === null ? null : readDay(stored.body)
    if (before !== null && before.fromMs > fromMs) return
    const day = before?.fromMs === fromMs ? before : { fromMs, marks: [], left: 0 }
    const known = new Set(day.marks.map(({ key }) => key))
    const added = marks.filter(({ key }) => !known.has(key))
    if (added.length === 0) return
    const body = encodeDay({ ...day, marks: [...day.marks, ...added.map(shortened)] })
    const record = { name, revision: randomUUID(), body }
    if ((await records.save('mark', record, stored?.revision ?? null, { ttlMs: TTL_MS })) !== null) return
  }
}

function shortened(mark: Mark): Mark {
  return { ...mark, text: mark.text.slice(0, TEXT_MAX) }
}

function encodeDay({ fromMs, marks, left }: Day): string {
  for (let size = marks.length; ; size -= 1) {
    const kept = marks.slice(0, size).map(({ atMs, kind, text, type, key }) => [atMs, kind, text, type, key])
    const body = JSON.stringify({ from: fromMs, left: left + marks.length - size, marks: kept })
    if (size === 0 || Buffer.byteLength(body) <= MARKS.bytesMax) return body
  }
}

function readDay(body: string): Day | null {
  const { from, left, marks } = bodyFields(body)
  if (typeof from !== 'number' || !Array.isArray(marks)) return null
  return { fromMs: from, marks: marks.flatMap(readMark), left: Number(left) || 0 }
}

function readMark(value: unknown): readonly Mark[] {
  if (!Array.isArray(value)) return []
  const [atMs, word, text, type, key]: readonly unknown[] = value
  const kind = MARK_KINDS.find((one) => one === word)
  if (typeof atMs !== 'number' || kind === undefined || typeof text !== 'string') return []
  return [{ atMs, kind, text, type: typeof type === 'string' ? type : null, key: String(key) }]
}

/** Marks of all days since `sinceMs`, oldest first, and how many there was no room for. */
export async function listMarks(
  records: Pick<Records, 'list'>,
  sinceMs: number,
): Promise<{ readonly marks: readonly Mark[]; readonly left: number }> {
  const stored = await records.list('mark')
  const days = stored.flatMap(({ body }) => readDay(body) ?? []).filter(({ fromMs }) => fromMs + DAY_MS > sinceMs)
  const marks = days.flatMap((day) => day.marks).filter(({ atMs }) => atMs >= sinceMs)
  return {
    marks: marks.sort((one, other) => one.atMs - other.atMs),
    left: days.reduce((sum, day) => sum + day.left, 0),
  }
}
