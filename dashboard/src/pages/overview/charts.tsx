import { useMemo } from 'preact/hooks'
import type { HistoryPoint } from '../../api/shapes.ts'
import { Chart, type Series } from '../../parts/chart.tsx'
import { brief, duration, rate } from '../../parts/format.ts'
import { Card } from '../../parts/page.tsx'

interface Line extends Omit<Series, 'values'> {
  readonly of: keyof Omit<HistoryPoint, 'atMs'>
}

interface Drawn {
  readonly title: string
  readonly format: (value: number) => string
  readonly isLog?: boolean
  readonly lines: readonly Line[]
}

const CHARTS: readonly Drawn[] = [
  {
    title: 'Throughput',
    format: rate,
    lines: [
      { label: 'completed', of: 'completedPerSecond', colour: 'good', filled: true },
      { label: 'enqueued', of: 'enqueuedPerSecond', colour: 'wait' },
      { label: 'failed', of: 'failedPerSecond', colour: 'bad' },
    ],
  },
  {
    title: 'Latency',
    format: duration,
    isLog: true,
    lines: [
      { label: 'run p95', of: 'durationP95Ms', colour: 'run' },
      { label: 'run p50', of: 'durationP50Ms', colour: 'run', dashed: true },
      { label: 'wait p95', of: 'waitP95Ms', colour: 'wait' },
      { label: 'wait p50', of: 'waitP50Ms', colour: 'wait', dashed: true },
    ],
  },
  {
    title: 'Depth',
    format: brief,
    lines: [
      { label: 'ready', of: 'ready', colour: 'wait', filled: true },
      { label: 'running', of: 'inProgress', colour: 'run' },
      { label: 'delayed', of: 'delayed', colour: 'quiet' },
    ],
  },
]

export function Charts({ points }: { readonly points: readonly HistoryPoint[] }) {
  const times = useMemo(() => points.map(({ atMs }) => atMs), [points])
  const drawn = useMemo(
    () => CHARTS.map(({ lines }) => lines.map((line) => ({ ...line, values: points.map((point) => point[line.of]) }))),
    [points],
  )
  return (
    <div class="charts">
      {CHARTS.map(({ title, format, isLog = false }, index) => (
        <Card key={title}>
          <Chart title={title} times={times} series={drawn[index] ?? []} format={format} isLog={isLog} />
        </Card>
      ))}
    </div>
  )
}
