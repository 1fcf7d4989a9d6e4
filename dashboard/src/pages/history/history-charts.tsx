import { useMemo, useState } from 'preact/hooks'
import { RANGES, type RangeName } from '../../../../src/observe/history/ranges.ts'
import type { HistoryPoint, Past } from '../../api/shapes.ts'
import { useAnswer } from '../../api/use-answer.ts'
import { useFresh } from '../../live/context.ts'
import { Chart, type Series } from '../../parts/chart.tsx'
import { Segment } from '../../parts/fields.tsx'
import { brief, compact, duration, exact, perUnit } from '../../parts/format.ts'
import { Card } from '../../parts/page.tsx'
import { downsample, isGap, withGaps } from '../overview/downsample.ts'
import type { History } from '../overview/use-history.ts'
import { AnnotationList, groupAnnotations } from './annotations.tsx'

interface HistoryChartsProps {
  /** Default: all types. */
  readonly type?: string
  readonly range: RangeName
  readonly choose: (range: RangeName) => void
  /** Shown instead of what the store keeps, from the first of them on, in the shortest range. */
  readonly live?: History
}

interface Line extends Omit<Series, 'values'> {
  readonly of: keyof Omit<HistoryPoint, 'atMs'>
}

interface Drawn {
  readonly title: string
  readonly format: (value: number) => string
  readonly tick: (value: number) => string
  readonly isLog?: boolean
  /** What values are multiplied by. */
  readonly factor?: number
  readonly lines: readonly Line[]
}

interface Shown {
  readonly text: string
  /** The rate is per this: so that quiet hours are no line along the bottom. */
  readonly unit: 's' | 'min' | 'h'
  readonly everyMs: number
}

const SHOWN: Readonly<Record<RangeName, Shown>> = {
  '15m': { text: '15 min', unit: 's', everyMs: 10_000 },
  '1h': { text: '1 h', unit: 'min', everyMs: 15_000 },
  '24h': { text: '24 h', unit: 'min', everyMs: 60_000 },
  '7d': { text: '7 d', unit: 'h', everyMs: 60_000 },
  '90d': { text: '90 d', unit: 'h', everyMs: 60_000 },
}
const NAMES: readonly RangeName[] = ['15m', '1h', '24h', '7d', '90d']
const SECONDS = { s: 1, min: 60, h: 3_600 } as const

/** The range in an address; a quarter of an hour if there is none. */
export function rangeIn(query: Readonly<Record<string, string>>): RangeName {
  return NAMES.find((name) => name === query.range) ?? '15m'
}

function chartsOf(unit: Shown['unit']): readonly Drawn[] {
  return [
    {
      title: 'Throughput',
      format: (value) => perUnit(value, unit),
      tick: (value) => `${compact(value)}/${unit}`,
      factor: SECONDS[unit],
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
}

/** Throughput, latency and depth over a range, of all types or one, with what may explain a change. */
export function HistoryCharts({ type, range, choose, live }: HistoryChartsProps) {
  const query = { range, ...(type !== undefined && { type }) }
  const { value, reload } = useAnswer('showHistory', { query })
  const { unit, everyMs } = SHOWN[range]
  useFresh(reload, { on: [], everyMs })
  const [hovered, setHovered] = useState<number | null>(null)
  // The answer to the range before stays until the next one is there.
  const past = value !== null && isOf(value, range) ? value : null
  const points = useMemo(() => pointsOf(past, range === '15m' ? (live ?? null) : null), [past, live, range])
  const times = useMemo(() => points.map(({ atMs }) => atMs), [points])
  const charts = useMemo(() => chartsOf(unit), [unit])
  const drawn = useMemo(
    () =>
      charts.map(({ lines, factor = 1 }) =>
        lines.map((line) => ({ ...line, values: valuesOf(points, line.of, factor) })),
      ),
    [points, charts],
  )
  const marks = useMemo(() => groupAnnotations(past?.annotations ?? [], times), [past, times])
  const isKept = past?.kept ?? true
  const at = hovered === null ? undefined : times[hovered]
  return (
    <>
      <div class="range">
        <output class="range-time">{at === undefined ? '' : `Values at ${exact(at)}`}</output>
        <fieldset class="segments">
          <legend class="unseen">How far back the charts go</legend>
          {NAMES.filter((name) => isKept || name === '15m').map((name) => (
            <Segment
              key={name}
              group={`range ${type ?? ''}`}
              text={SHOWN[name].text}
              isChosen={name === range}
              choose={() => choose(name)}
            />
          ))}
        </fieldset>
      </div>
      <div class="charts">
        {charts.map(({ title, format, tick, isLog = false }, index) => (
          <Card key={`${title} ${range}`}>
            <Chart
              {...{ title, times, format, tick, isLog, marks }}
              group={type ?? 'all types'}
              series={drawn[index] ?? []}
              // One stop for the keyboard at each mark, not three.
              canFocusMarks={index === 0}
              onHover={setHovered}
            />
          </Card>
        ))}
      </div>
      {type !== undefined && past?.hasOthers === true && !past.types.includes(type) && (
        <p class="hint">
          The history keeps the 20 busiest types apart, and this was none of them: it has only their sum.
        </p>
      )}
      <AnnotationList annotations={past?.annotations ?? []} left={past?.annotationsLeft ?? 0} />
    </>
  )
}

function isOf({ kept, stepMs }: Past, range: RangeName): boolean {
  return !kept || stepMs === RANGES[range].stepMs
}

const POINTS_MAX = 90

/** Live points go before those of the store, which are of the time before the server started. */
function pointsOf(past: Past | null, live: History | null) {
  const stored = past?.points ?? []
  if (live === null) return stored
  const firstMs = live.points[0]?.atMs ?? Number.POSITIVE_INFINITY
  const older = past?.kept === false ? [] : stored.filter(({ atMs }) => atMs + (past?.stepMs ?? 0) < firstMs)
  const sampling = { rangeMs: RANGES['15m'].ms, stepMs: live.stepMs, pointsMax: POINTS_MAX }
  const known = older.filter(({ completedPerSecond, ready }) => completedPerSecond !== null || ready !== null)
  return withGaps(downsample([...known, ...live.points], sampling), sampling)
}

function valuesOf(points: ReturnType<typeof pointsOf>, of: Line['of'], factor: number): readonly (number | null)[] {
  return points.map((point) => {
    const value = isGap(point) ? null : point[of]
    return value === null ? null : value * factor
  })
}
