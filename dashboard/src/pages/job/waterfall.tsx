import type { JobDetail, JobEvent } from '../../api/shapes.ts'
import { useNow } from '../../parts/clock.ts'
import { duration, exact, readProgress } from '../../parts/format.ts'
import { Card } from '../../parts/page.tsx'
import { type Lane, lanesOf, type Span, spansOf, ticksOf } from './spans.ts'

interface WaterfallProps {
  readonly job: JobDetail
  readonly history: readonly JobEvent[]
}

/** Attempts one below the other on one axis of time, each with the waiting before it. */
export function Waterfall({ job, history }: WaterfallProps) {
  const now = useNow()
  const isLive = job.state === 'queued' || job.state === 'in_progress'
  const spans = spansOf(history, isLive ? now : null)
  const [first] = spans
  if (first === undefined) return null
  const startMs = first.fromMs
  const lengthMs = Math.max(1, ...spans.map(({ toMs }) => toMs - startMs))
  const axis = { startMs, lengthMs }
  const progress = job.state === 'in_progress' ? (readProgress(job.progress)?.text ?? null) : null
  const lanes = lanesOf(spans)
  return (
    <Card title="Where its time went">
      <ol class="waterfall" aria-label="Attempts and waits">
        {lanes.map((lane, index) => (
          <Row
            key={`${lane.title} ${lane.spans[0]?.fromMs}`}
            lane={lane}
            axis={axis}
            progress={index === lanes.length - 1 ? progress : null}
          />
        ))}
      </ol>
      <div class="waterfall-axis" aria-hidden="true">
        {ticksOf(lengthMs).map((ms) => (
          <span key={ms} style={{ left: `${(ms / lengthMs) * 100}%` }}>
            {ms === 0 ? '0' : duration(ms)}
          </span>
        ))}
      </div>
    </Card>
  )
}

interface Axis {
  readonly startMs: number
  readonly lengthMs: number
}

function Row({ lane, axis, progress }: { readonly lane: Lane; readonly axis: Axis; readonly progress: string | null }) {
  const last = lane.spans.at(-1)
  const waitedMs = lane.spans.reduce((sum, span) => sum + (span.kind === 'running' ? 0 : span.toMs - span.fromMs), 0)
  const ranMs = last?.kind === 'running' ? last.toMs - last.fromMs : null
  const facts = [
    waitedMs > 0 && `waited ${duration(waitedMs)}`,
    ranMs !== null &&
      last !== undefined &&
      `${last.text === 'running' ? 'has run' : `${last.text} after`} ${duration(ranMs)}`,
    progress !== null && `progress ${progress}`,
  ].filter(Boolean)
  return (
    <li>
      <p class="waterfall-row">
        <strong>{lane.title}</strong> <span class="quiet">{facts.join(', ')}</span>
      </p>
      <div class="waterfall-track">
        {lane.spans.map((span) => (
          <Bar key={`${span.kind} ${span.fromMs}`} span={span} axis={axis} />
        ))}
      </div>
    </li>
  )
}

/** Its values show when it is pointed at or focused. */
function Bar({ span, axis }: { readonly span: Span; readonly axis: Axis }) {
  const { kind, fromMs, toMs, text, tone } = span
  const left = ((fromMs - axis.startMs) / axis.lengthMs) * 100
  const width = ((toMs - fromMs) / axis.lengthMs) * 100
  const values = `${text}: ${duration(toMs - fromMs)}, from ${exact(fromMs)}`
  return (
    <button
      type="button"
      class={`waterfall-bar ${kind} tone-${tone} ${left > 50 ? 'to-left' : ''}`}
      style={{ left: `${left}%`, width: `${width}%` }}
      aria-label={values}
      data-values={values}
    />
  )
}
