/** When types were paused, as far as the history tells. */
import type { Evidence, RecordChange } from './evidence.ts'

export interface Pauses {
  readonly hasAny: boolean
  /** It is possible that the type was paused at that time. */
  mayBePaused(type: string, atMs: number): boolean
  mayBePausedWithin(type: string, fromMs: number, toMs: number): boolean
  /** When the pause that surely holds at that time was answered; null when none surely does. */
  pausedSinceMs(type: string, atMs: number): number | null
}

const known = new WeakMap<Evidence, Pauses>()

export function pausesOf(evidence: Evidence): Pauses {
  const had = known.get(evidence)
  if (had !== undefined) return had
  const byType = Map.groupBy(
    evidence.records.filter(({ kind, done }) => kind === 'pause' && done !== 'no'),
    ({ name }) => name,
  )
  const pauses: Pauses = {
    hasAny: byType.size > 0,
    mayBePaused: (type, atMs) => last(byType.get(type) ?? [], atMs).some(({ body }) => body !== null),
    mayBePausedWithin: (type, fromMs, toMs) => {
      const changes = byType.get(type)
      if (changes === undefined) return false
      return (
        last(changes, fromMs).some(({ body }) => body !== null) ||
        changes.some(({ askedMs }) => askedMs >= fromMs && askedMs <= toMs)
      )
    },
    pausedSinceMs: (type, atMs) => {
      const candidates = last(byType.get(type) ?? [], atMs)
      const [pause] = candidates
      if (pause === undefined || candidates.length > 1 || pause.body === null || pause.done !== 'yes') return null
      return pause.answeredMs
    },
  }
  known.set(evidence, pauses)
  return pauses
}

/** The changes of which one is the last that was made until then: those that no other surely followed. */
function last(changes: readonly RecordChange[], atMs: number): readonly RecordChange[] {
  const until = changes.filter(({ askedMs }) => askedMs <= atMs)
  return until.filter(
    (change) =>
      !until.some(
        (other) =>
          other.done === 'yes' &&
          other.askedMs > (change.answeredMs ?? Number.POSITIVE_INFINITY) &&
          (other.answeredMs ?? Number.POSITIVE_INFINITY) <= atMs,
      ),
  )
}
