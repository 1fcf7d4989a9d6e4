import { useMemo, useState } from 'preact/hooks'
import type { HistoryPoint } from '../../api/shapes.ts'
import { Chart, type Series } from '../../parts/chart.tsx'
import { Segment } from '../../parts/fields.tsx'
import { brief, compact, duration, rate } from '../../parts/format.ts'
import { Card } from '../../parts/page.tsx'
import { downsample, isGap, withGaps } from './downsample.ts'
import type { History } from './use-history.ts'

interface Line extends Omit<Series, 'values'> {
  readonly of: keyof Omit<HistoryPoint, 'atMs'>
}

interface Drawn {
  readonly title: string
  readonly format: (value: number) => string
  readonly tick: (value: number) => string
  readonly isLog?: boolean
  readonly lines: readonly Line[]
}

const CHARTS: readonly Drawn[] = [
  {
    title: 'Throughput',
    format: rate,
    tick: (value) => `${compact(value)}/s`,
    lines: [
      { label: 'completed', of: 'completedPerSecond', colour: 'good', filled: true },
      { label: 'enqueued', of: 'enqueuedPerSecond', colour: 'wait' },
      { label: 'failed', of: 'failedPerSecond', colour: 'bad' },
    ],
  },
  {
    title: 'Latency',
    format: duration,
    tick: duration,
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
    tick: compact,
    lines: [
      { label: 'ready', of: 'ready', colour: 'wait', filled: true },
      { label: 'running', of: 'inProgress', colour: 'run' },
      { label: 'delayed', of: 'delayed', colour: 'quiet' },
    ],
  },
]

const RANGES = [
  { text: '2 min', ms: 120_000 },
  { text: '5 min', ms: 300_000 },
  { text: '15 min', ms: 900_000 },
] as const

const POINTS_MAX = 90

export function Charts({ history: { points: all, stepMs } }: { readonly history: History }) {
  const [rangeMs, setRangeMs] = useState<number>(RANGES[2].ms)
  const points = useMemo(() => {
    const sampling = { rangeMs, stepMs, pointsMax: POINTS_MAX }
    return withGaps(downsample(all, sampling), sampling)
  }, [all, rangeMs, stepMs])
  const times = useMemo(() => points.map(({ atMs }) => atMs), [points])
  const drawn = useMemo(
    () =>
      CHARTS.map(({ lines }) =>
        lines.map((line) => ({ ...line, values: points.map((point) => (isGap(point) ? null : point[line.of])) })),
      ),
    [points],
  )
  return (
    <>
      <fieldset class="segments range">
        <legend class="unseen">How far back the charts go</legend>
        {RANGES.map(({ text, ms }) => (
          <Segment key={text} group="range" text={text} isChosen={ms === rangeMs} choose={() => setRangeMs(ms)} />
        ))}
      </fieldset>
      <div class="charts">
        {CHARTS.map(({ title, format, tick, isLog = false }, index) => (
          <Card key={title}>
            <Chart title={title} times={times} series={drawn[index] ?? []} format={format} tick={tick} isLog={isLog} />
          </Card>
        ))}
      </div>
    </>
  )
}
