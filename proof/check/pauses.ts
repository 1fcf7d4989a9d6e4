/** When types were paused, as far as the history tells. */
import type { Evidence, RecordChange } from './evidence.ts'
import { firstIndex, type Span, Spans } from './spans.ts'

export interface Pauses {
  readonly hasAny: boolean
  /** It is possible that the type was paused at some time within. */
  mayBePaused(type: string, fromMs: number, toMs: number): boolean
  /** When the pause that surely holds at that time was answered; null when none surely does. */
  pausedSinceMs(type: string, atMs: number): number | null
}

const known = new WeakMap<Evidence, Pauses>()

export function pausesOf(evidence: Evidence): Pauses {
  const had = known.get(evidence)
  if (had !== undefined) return had
  const changes = evidence.records.filter(({ kind, done }) => kind === 'pause' && done !== 'no')
  const byType = new Map(
    [...Map.groupBy(changes, ({ name }) => name)].map(([type, own]) => {
      const sorted = own.toSorted((a, b) => a.askedMs - b.askedMs)
      return [type, { possible: new Spans(possibleSpans(sorted)), sure: sureSpans(sorted) }]
    }),
  )
  const pauses: Pauses = {
    hasAny: byType.size > 0,
    mayBePaused: (type, fromMs, toMs) => byType.get(type)?.possible.meets(fromMs, toMs) ?? false,
    pausedSinceMs: (type, atMs) => {
      const sure = byType.get(type)?.sure ?? []
      const span = sure[firstIndex(sure.length, (index) => (sure[index]?.toMs ?? 0) >= atMs)]
      return span !== undefined && span.fromMs <= atMs ? span.fromMs : null
    },
  }
  known.set(evidence, pauses)
  return pauses
}

/** From when a pause was asked for until a resume that was asked for after it was answered. */
function possibleSpans(changes: readonly RecordChange[]): readonly Span[] {
  return changes.flatMap(({ body, askedMs, answeredMs }, index) => {
    if (body === null) return []
    const resume = changes
      .slice(index + 1)
      .find(
        (other) =>
          other.body === null && other.done === 'yes' && other.askedMs > (answeredMs ?? Number.POSITIVE_INFINITY),
      )
    return [{ fromMs: askedMs, toMs: resume?.answeredMs ?? Number.POSITIVE_INFINITY }]
  })
}

/** From when a pause was answered until anything else was asked for. What is not known to be done may be done at any time. */
function sureSpans(changes: readonly RecordChange[]): readonly Span[] {
  const spans: Span[] = []
  for (const [index, { body, done, askedMs, answeredMs }] of changes.entries()) {
    if (done !== 'yes') break
    const before = changes[index - 1]
    const isAlone = before === undefined || (before.answeredMs ?? Number.POSITIVE_INFINITY) < askedMs
    if (body === null || answeredMs === null || !isAlone) continue
    const toMs = changes[index + 1]?.askedMs ?? Number.POSITIVE_INFINITY
    if (toMs > answeredMs) spans.push({ fromMs: answeredMs, toMs })
  }
  return spans
}
