import { useEffect, useRef, useState } from 'preact/hooks'
import type uPlot from 'uplot'
import Plot from 'uplot'
import 'uplot/dist/uPlot.min.css'
import { COUNT_STEPS, countRange, DURATION_TICKS, durationRange, STEPS_SECONDS, timeRange } from './axes.ts'
import { timeOfDay } from './format.ts'
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

interface ChartProps {
  readonly title: string
  /** Milliseconds since 1970, one for each value. */
  readonly times: readonly number[]
  readonly series: readonly Series[]
  readonly format: (value: number) => string
  /** The labels of the axis, which have less room. */
  readonly tick: (value: number) => string
  /** For durations, which vary widely. */
  readonly isLog?: boolean
}

const HEIGHT = 168

/** Values over time. The legend shows the value under the pointer, or the newest. */
export function Chart({ title, times, series, format, tick, isLog = false }: ChartProps) {
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
    const made = new Plot(optionsOf(box, series, tick, isLog, setHovered), newest.current, box)
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

  const at = hovered !== null && hovered < times.length ? hovered : times.length - 1
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
      <div ref={frame} class="chart-frame" role="img" aria-label={`${title}, latest: ${said}`} />
    </figure>
  )
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

const clockTime = (seconds: number): string => timeOfDay(seconds * 1_000, seconds * 1_000)

function optionsOf(
  box: HTMLElement,
  series: readonly Series[],
  tick: (value: number) => string,
  isLog: boolean,
  onHover: (index: number | null) => void,
): uPlot.Options {
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
    padding: [8, 26, 0, 0],
    cursor: { sync: { key: 'overview' }, drag: { x: false, y: false }, points: { size: 6 } },
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
        values: (_, splits) => splits.map(clockTime),
      },
      {
        ...axis,
        size: 54,
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
    hooks: { setCursor: [(self) => onHover(self.cursor.idx ?? null)] },
  }
}
