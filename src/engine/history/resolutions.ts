/** How long history is kept, in what steps, and how much room it takes at most. */
import type { HistoryKind } from '../records.ts'
import { Block } from './block.ts'

export type ResolutionKind = Extract<HistoryKind, 'second' | 'minute' | 'hour'>

export interface Resolution {
  readonly kind: ResolutionKind
  readonly stepMs: number
  /** Steps in a record. */
  readonly steps: number
  /** Records: those of the time that is kept, and the one that is being filled. Their names are used again in a ring. */
  readonly records: number
  readonly bytesMax: number
}

const KB = 1_024
const [SECOND_MS, MINUTE_MS, HOUR_MS] = [1_000, 60_000, 3_600_000] as const
export const DAY_MS = 24 * HOUR_MS

export const RESOLUTIONS = {
  /** A quarter of an hour, in records of a minute. */
  second: { kind: 'second', stepMs: SECOND_MS, steps: 60, records: 16, bytesMax: 64 * KB },
  /** A day, in records of ten minutes. */
  minute: { kind: 'minute', stepMs: MINUTE_MS, steps: 10, records: 145, bytesMax: 40 * KB },
  /** Ninety days, in records of a day. */
  hour: { kind: 'hour', stepMs: HOUR_MS, steps: 24, records: 91, bytesMax: 80 * KB },
} as const satisfies Readonly<Record<ResolutionKind, Resolution>>

/** Marks of a day are one record. */
export const MARKS = Object.freeze({ records: 91, bytesMax: 16 * KB })

/** All that the history of a store can take, besides the names and what workers have said in the last minute. */
export const HISTORY_BYTES_MAX: number =
  Object.values(RESOLUTIONS).reduce((sum, { records, bytesMax }) => sum + records * bytesMax, 0) +
  MARKS.records * MARKS.bytesMax

/** The keeper writes at least this often while it runs, also if nothing changes: a longer silence is a gap. */
export const HELD_MS = 600_000

export function blockStartMs({ stepMs, steps }: Resolution, atMs: number): number {
  const blockMs = stepMs * steps
  return Math.floor(atMs / blockMs) * blockMs
}

/** The record of a time. Its name comes again after `records` blocks. */
export function recordName({ stepMs, steps, records }: Resolution, fromMs: number): string {
  return String(Math.round(fromMs / (stepMs * steps)) % records).padStart(3, '0')
}

export function emptyBlock(resolution: Resolution, atMs: number): Block {
  return new Block(blockStartMs(resolution, atMs), resolution.stepMs)
}
