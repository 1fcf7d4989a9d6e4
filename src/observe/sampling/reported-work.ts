import type { Counts } from '../../engine/engine.ts'
import type { Beat, EndedAttempts } from '../../engine/presence.ts'

/** Attempts of a type that ended in a step. */
export interface TypeEnds extends EndedAttempts {
  /** Whether completed jobs of the type leave the store, so that it cannot tell how many there were. */
  readonly isRemoved: boolean
}

export type ReportedEnds = ReadonlyMap<string, TypeEnds>

/** What one worker has said of one type. */
interface Report {
  readonly type: string
  readonly atMs: number
  readonly totals: EndedAttempts
  /** Completed jobs in the store before it was said. */
  readonly storedBefore: number
  /** Said, but not handed out yet. It is spread over the time until the next beat. */
  left: EndedAttempts
  readonly perMs: EndedAttempts
}

const NOTHING: EndedAttempts = { completed: 0, failed: 0 }

/**
 * What workers of all processes do, from the totals in their heartbeats: each beat tells of the ten seconds before it. What
 * it adds is handed out over the next ten, so that a chart shows a rate and its sum is right.
 */
export class ReportedWork {
  readonly #reports = new Map<string, Report>()
  /** Types whose completed jobs leave the store. */
  readonly #removed = new Set<string>()
  #storedBefore: Counts = {}

  /**
   * What ended in a step that took `stepMs`, by type. The store must have been counted after the beats were read. Null when
   * a worker does not report it.
   */
  take(beats: readonly Beat[], counts: Counts, stepMs: number): ReportedEnds | null {
    const present = new Set(beats.map(keyOf))
    const ends = new Map<string, TypeEnds>()
    for (const [key, gone] of this.#reports) {
      if (present.has(key)) continue
      this.#reports.delete(key)
      this.#add(ends, gone.type, gone.left)
    }
    let isKnown = true
    for (const beat of beats) {
      const totals = beat.work?.ended
      if (totals === undefined) isKnown = false
      else this.#add(ends, beat.type, takePart(this.#report(beat, totals, counts), stepMs))
    }
    this.#storedBefore = counts
    return isKnown ? ends : null
  }

  #report(beat: Beat, totals: EndedAttempts, counts: Counts): Report {
    const before = this.#reports.get(keyOf(beat))
    if (before !== undefined && before.atMs === beat.atMs) return before
    const { type, atMs } = beat
    const more = before === undefined ? NOTHING : difference(totals, before.totals)
    if (before !== undefined && more.completed > 0) {
      // Counted before the earlier beat, so nothing that the later one adds can be in it.
      const stored = (counts[type]?.completed ?? 0) - before.storedBefore
      if (stored < more.completed) this.#removed.add(type)
      else this.#removed.delete(type)
    }
    const left = sum(more, before?.left ?? NOTHING)
    const spreadMs = Math.max(1, atMs - (before?.atMs ?? 0))
    const perMs = { completed: left.completed / spreadMs, failed: left.failed / spreadMs }
    const report = { type, atMs, totals, storedBefore: this.#storedBefore[type]?.completed ?? 0, left, perMs }
    this.#reports.set(keyOf(beat), report)
    return report
  }

  #add(ends: Map<string, TypeEnds>, type: string, part: EndedAttempts): void {
    ends.set(type, { ...sum(part, ends.get(type) ?? NOTHING), isRemoved: this.#removed.has(type) })
  }
}

/** The share of a step in what is left. */
function takePart(report: Report, stepMs: number): EndedAttempts {
  const { left, perMs } = report
  const part = {
    completed: Math.min(left.completed, perMs.completed * stepMs),
    failed: Math.min(left.failed, perMs.failed * stepMs),
  }
  report.left = difference(left, part)
  return part
}

function keyOf({ instance, type }: Beat): string {
  return `${instance}\n${type}`
}

function sum(a: EndedAttempts, b: EndedAttempts): EndedAttempts {
  return { completed: a.completed + b.completed, failed: a.failed + b.failed }
}

function difference(a: EndedAttempts, b: EndedAttempts): EndedAttempts {
  return { completed: a.completed - b.completed, failed: a.failed - b.failed }
}
