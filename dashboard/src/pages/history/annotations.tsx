import type { Past } from '../../api/shapes.ts'
import type { ChartMark } from '../../parts/chart.tsx'
import { counted, exact } from '../../parts/format.ts'
import { Ago } from '../../parts/time.tsx'

type Annotation = Past['annotations'][number]

const KINDS: Readonly<Record<Annotation['kind'], string>> = {
  deploy: 'Deploy',
  pause: 'Pause',
  resume: 'Resume',
  alert: 'Alert',
  resolved: 'Resolved',
}

/** Marks that are nearer to each other than this share of the width are one. */
const APART = 0.02

/** Those within the times of a chart, whose last point is of a time that goes on. */
export function groupAnnotations(annotations: readonly Annotation[], times: readonly number[]): readonly ChartMark[] {
  const [firstMs = 0, lastMs = 0] = [times[0], times.at(-1)]
  const marks: ChartMark[] = []
  for (const one of annotations) {
    if (one.atMs < firstMs) continue
    const [atMs, last] = [Math.min(one.atMs, lastMs), marks.at(-1)]
    const said = `${KINDS[one.kind]}, ${exact(one.atMs)}: ${one.text}`
    if (last !== undefined && atMs - last.atMs < (lastMs - firstMs) * APART) last.texts.push(said)
    else marks.push({ atMs, kind: one.kind, texts: [said] })
  }
  return marks
}

/** The same as the marks in the charts, for everybody who cannot point at them. */
export function AnnotationList({
  annotations,
  left,
}: {
  readonly annotations: readonly Annotation[]
  readonly left: number
}) {
  if (annotations.length === 0) return null
  return (
    <details class="annotations">
      <summary>{counted(annotations.length, 'event')} in this range</summary>
      <ol>
        {annotations.toReversed().map(({ atMs, kind, text }) => (
          <li key={`${atMs} ${kind} ${text}`}>
            <span class={`mark-word mark-${kind}`}>{KINDS[kind]}</span> {text} <Ago atMs={atMs} />
          </li>
        ))}
      </ol>
      {left > 0 && <p class="hint">{counted(left, 'older event')} are not shown.</p>}
    </details>
  )
}
