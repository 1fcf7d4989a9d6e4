/** The time of a job as spans: what it waited for, what it ran, and how each attempt ended. */
import type { JobEvent } from '../../api/shapes.ts'
import type { Tone } from '../../parts/words.ts'

export interface Span {
  readonly kind: 'waiting' | 'backoff' | 'running'
  readonly fromMs: number
  readonly toMs: number
  /** Of a running span. */
  readonly attempt: number
  readonly text: string
  readonly tone: Tone
}

/** One row: an attempt with the waiting before it. The last may have no attempt yet. */
export interface Lane {
  readonly title: string
  readonly spans: readonly Span[]
}

interface Ending {
  readonly text: string
  readonly tone: Tone
}

const ENDINGS: Readonly<Record<string, Ending>> = {
  completed: { text: 'completed', tone: 'good' },
  failed: { text: 'failed', tone: 'bad' },
  dead: { text: 'failed for good', tone: 'bad' },
  released: { text: 'released, no attempt counted', tone: 'wait' },
  expired: { text: 'lease lost', tone: 'warn' },
  cancelled: { text: 'cancelled', tone: 'quiet' },
  superseded: { text: 'superseded', tone: 'quiet' },
}

/** Events without a readable time are left out. `endMs`: now, for a job that is not over; otherwise null. */
export function spansOf(history: readonly JobEvent[], endMs: number | null): readonly Span[] {
  const spans: Span[] = []
  let open: Omit<Span, 'toMs'> | null = null
  const close = (toMs: number, ending: Partial<Span> = {}): void => {
    if (open !== null) spans.push({ ...open, toMs: Math.max(open.fromMs, toMs), ...ending })
    open = null
  }
  const wait = (fromMs: number, text = 'waiting'): void => {
    open = { kind: 'waiting', fromMs, attempt: 0, text, tone: 'wait' }
  }
  for (const { name, atMs, attempt, detail } of history) {
    if (atMs === null) continue
    const delayMs = typeof detail?.delayMs === 'number' ? detail.delayMs : 0
    if (name === 'started') {
      close(atMs)
      open = { kind: 'running', fromMs: atMs, attempt, text: 'running', tone: 'run' }
      continue
    }
    close(atMs, isRunning(open) ? ENDINGS[name] : {})
    if (name === 'enqueued' || name === 'replayed' || name === 'expired') wait(atMs)
    if ((name === 'retried' || name === 'released') && delayMs > 0) {
      const text = name === 'retried' ? 'waiting to be retried' : 'given back for a while'
      spans.push({ kind: 'backoff', fromMs: atMs, toMs: atMs + delayMs, attempt: 0, text, tone: 'quiet' })
    }
    if (name === 'retried' || name === 'released') wait(atMs + delayMs)
  }
  if (endMs !== null) close(endMs)
  return cut(spans, endMs)
}

function isRunning(span: Omit<Span, 'toMs'> | null): boolean {
  return span?.kind === 'running'
}

/** A backoff ends with the next start, also where a clock or a person made it earlier, and has not passed the present. */
function cut(spans: readonly Span[], endMs: number | null): readonly Span[] {
  return spans
    .map((span, index) => {
      const next = spans.slice(index + 1).find(({ kind }) => kind === 'running')?.fromMs ?? endMs ?? span.toMs
      return span.kind === 'running' ? span : { ...span, toMs: Math.max(span.fromMs, Math.min(span.toMs, next)) }
    })
    .filter(({ kind, fromMs, toMs }) => kind === 'running' || toMs > fromMs)
}

export function lanesOf(spans: readonly Span[]): readonly Lane[] {
  const lanes: { title: string; spans: Span[] }[] = []
  let waited: Span[] = []
  for (const span of spans) {
    waited.push(span)
    if (span.kind !== 'running') continue
    lanes.push({ title: `Attempt ${span.attempt}`, spans: waited })
    waited = []
  }
  if (waited.length > 0) lanes.push({ title: lanes.length === 0 ? 'Not started' : 'Next attempt', spans: waited })
  return lanes
}

const STEPS_MS: readonly number[] = [
  ...[1, 2, 5, 10, 20, 50, 100, 200, 500].flatMap((step) => [step]),
  ...[1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1_200, 1_800].map((seconds) => seconds * 1_000),
  ...[1, 2, 4, 6, 12, 24, 48, 120, 240].map((hours) => hours * 3_600_000),
]

/** Whole steps of the axis from its beginning, at most six. */
export function ticksOf(lengthMs: number): readonly number[] {
  const stepMs = STEPS_MS.find((step) => lengthMs / step <= 5) ?? lengthMs / 5
  return Array.from({ length: Math.floor(lengthMs / stepMs) + 1 }, (_, index) => index * stepMs)
}
