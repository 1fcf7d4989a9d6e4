import { useEffect, useRef, useState } from 'preact/hooks'
import type uPlot from 'uplot'
import Plot from 'uplot'
import 'uplot/dist/uPlot.min.css'
import { COUNT_STEPS, countRange, DURATION_TICKS, durationRange, STEPS_SECONDS, timeRange } from './axes.ts'
import { timeOnAxis } from './format.ts'
import { usePaint } from './theme.ts'

export interface Series {
  readonly label: string
  /** The name of a custom property that holds its colour. */
  readonly colour: string
  readonly values: readonly (number | null)[]
  /** Fills the area below it. */
  readonly filled?: boolean
  readonly dashed?: boolean
}

/** Something that may explain a change: a line through the chart, with words for those who point at it. */
export interface ChartMark {
  readonly atMs: number
  readonly kind: string
  readonly texts: string[]
}

interface ChartProps {
  readonly title: string
  /** Charts of a group show the values of one time. */
  readonly group: string
  /** Milliseconds since 1970, one for each value. */
  readonly times: readonly number[]
  readonly series: readonly Series[]
  readonly format: (value: number) => string
  /** The labels of the axis, which have less room. */
  readonly tick: (value: number) => string
  /** For durations, which vary widely. */
  readonly isLog?: boolean
  readonly marks?: readonly ChartMark[]
  readonly canFocusMarks?: boolean
  /** The index of the time under the pointer. */
  readonly onHover?: (index: number | null) => void
}

const HEIGHT = 168
/** Of the labels at the left, and of the room at the right. */
const [LEFT, RIGHT] = [54, 26] as const
const NO_MARKS: readonly ChartMark[] = []

/** Values over time. The legend shows the value under the pointer, or the newest. */
export function Chart({ title, group, times, series, format, tick, ...more }: ChartProps) {
  const { isLog = false, marks = NO_MARKS, canFocusMarks = false, onHover } = more
  const frame = useRef<HTMLDivElement>(null)
  const plot = useRef<uPlot | null>(null)
  const [hovered, setHovered] = useState<number | null>(null)
  const paint = usePaint()
  const data = toData(times, series, isLog)
  const newest = useRef(data)
  newest.current = data
  const looks = JSON.stringify(series.map(({ label, colour, filled, dashed }) => [label, colour, filled, dashed]))

  // The looks identify the series; new values are set below.
  useEffect(() => {
    const box = frame.current
    if (box === null) return
    const hover = (index: number | null): void => {
      setHovered(index)
      onHover?.(index)
    }
    const made = new Plot(optionsOf(box, { series, tick, isLog, group, hover }), newest.current, box)
    plot.current = made
    const observer = new ResizeObserver(() => made.setSize({ width: box.clientWidth, height: HEIGHT }))
    observer.observe(box)
    return () => {
      observer.disconnect()
      made.destroy()
      plot.current = null
    }
  }, [looks, paint])

  useEffect(() => plot.current?.setData(data), [data])

  const at = hovered !== null && hovered < times.length ? hovered : newestOf(times.length, series)
  const said = series.map(({ label, values }) => `${label} ${shown(values[at], format)}`).join(', ')
  return (
    <figure class="chart">
      <figcaption>
        <h2>{title}</h2>
        <ul class="legend">
          {series.map(({ label, colour, values, dashed = false }) => (
            <li key={label}>
              <span class={`swatch swatch-${colour} ${dashed ? 'swatch-dashed' : ''}`} />
              {label} <b class="figures">{shown(values[at], format)}</b>
            </li>
          ))}
        </ul>
      </figcaption>
      <div class="chart-marked">
        <div ref={frame} class="chart-frame" role="img" aria-label={`${title}, latest: ${said}`} />
        <Marks times={times} marks={marks} canFocus={canFocusMarks} />
      </div>
    </figure>
  )
}

interface MarksProps {
  readonly times: readonly number[]
  readonly marks: readonly ChartMark[]
  readonly canFocus: boolean
}

/** Beside the canvas, so that they can be pointed at and focused. */
function Marks({ times, marks, canFocus }: MarksProps) {
  const seconds = times.map((ms) => ms / 1_000)
  const [from, to] = timeRange(null, seconds[0] ?? null, seconds.at(-1) ?? null)
  return (
    <>
      {marks.map(({ atMs, kind, texts }) => {
        const share = (atMs / 1_000 - from) / (to - from)
        const left = `calc(${LEFT}px + (100% - ${LEFT + RIGHT}px) * ${share.toFixed(4)})`
        const text = texts.join('\n')
        return canFocus ? (
          <button
            key={atMs}
            type="button"
            class={`mark mark-${kind} ${share > 0.5 ? 'mark-late' : ''}`}
            style={{ left }}
            aria-label={text}
          >
            <span class="mark-text">{text}</span>
          </button>
        ) : (
          <span key={atMs} class={`mark mark-${kind}`} style={{ left }} aria-hidden="true" />
        )
      })}
    </>
  )
}

/** The newest seconds may not be stored yet, so a value a few points back is still the newest. */
const NOT_YET = 3

function newestOf(count: number, series: readonly Series[]): number {
  const isKnown = (index: number): boolean => series.some(({ values }) => (values[index] ?? null) !== null)
  for (let index = count - 1; index >= count - NOT_YET; index -= 1) if (isKnown(index)) return index
  return count - 1
}

function shown(value: number | null | undefined, format: (value: number) => string): string {
  return value === null || value === undefined ? '–' : format(value)
}

function toData(times: readonly number[], series: readonly Series[], isLog: boolean): uPlot.AlignedData {
  // A logarithmic axis has no zero.
  const shown = (value: number | null): number | null => (isLog && value !== null ? Math.max(1, value) : value)
  return [times.map((ms) => ms / 1_000), ...series.map(({ values }) => values.map(shown))]
}

/** Values without a neighbour have no line, so they get a disc. */
const alone: uPlot.Series.Points.Filter = (plot, series) => {
  const values = plot.data[series] ?? []
  const isKnown = (index: number): boolean => (values[index] ?? null) !== null
  return [...values.keys()].filter((index) => isKnown(index) && !isKnown(index - 1) && !isKnown(index + 1))
}

interface Settings {
  readonly series: readonly Series[]
  readonly tick: (value: number) => string
  readonly isLog: boolean
  readonly group: string
  readonly hover: (index: number | null) => void
}

function optionsOf(box: HTMLElement, { series, tick, isLog, group, hover }: Settings): uPlot.Options {
  const style = getComputedStyle(box)
  const colour = (name: string): string => style.getPropertyValue(`--${name}`).trim()
  const axis = {
    stroke: colour('ink-2'),
    font: `11px ${style.fontFamily}`,
    grid: { stroke: colour('line'), width: 1 },
    ticks: { show: false },
  }
  return {
    width: box.clientWidth,
    height: HEIGHT,
    legend: { show: false },
    padding: [8, RIGHT, 0, 0],
    cursor: { sync: { key: group }, drag: { x: false, y: false }, points: { size: 6 } },
    scales: {
      x: { time: true, range: timeRange },
      y: { range: isLog ? durationRange : countRange, distr: isLog ? 3 : 1 },
    },
    axes: [
      {
        ...axis,
        grid: { show: false },
        size: 26,
        space: 60,
        incrs: [...STEPS_SECONDS],
        values: (_, splits, __, ___, apart) => splits.map((seconds) => timeOnAxis(seconds * 1_000, apart * 1_000)),
      },
      {
        ...axis,
        size: LEFT,
        space: 28,
        incrs: [...COUNT_STEPS],
        values: (_, splits) => splits.map(tick),
        ...(isLog && DURATION_TICKS),
      },
    ],
    series: [
      {},
      ...series.map(({ label, colour: name, filled = false, dashed = false }) => ({
        label,
        stroke: colour(name),
        width: 1.6,
        points: { show: true, filter: alone, size: 4, fill: colour(name) },
        ...(filled && { fill: `${colour(name)}22` }),
        ...(dashed && { dash: [4, 4] }),
      })),
    ],
    hooks: { setCursor: [(self) => hover(self.cursor.idx ?? null)] },
  }
}
