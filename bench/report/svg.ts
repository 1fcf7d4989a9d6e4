/** A bar chart as SVG, readable on light and dark pages: the colours follow the reader's own setting. */
import type { Metric } from '../scenario.ts'
import { formatWithUnit, middleOf } from './figures.ts'
import type { ScenarioRuns } from './published.ts'

export interface Bar {
  readonly label: string
  readonly value: number
  readonly text: string
  readonly ours: boolean
}

export interface Panel {
  readonly title: string
  readonly bars: readonly Bar[]
}

/** What the picture shows: rates, where longer is better. */
const SHOWN: readonly { readonly scenario: string; readonly metric: string; readonly title: string }[] = [
  { scenario: 'drain', metric: 'rate', title: 'Jobs drained per second' },
  { scenario: 'drain', metric: 'bulk', title: 'Jobs enqueued per second, in bulk' },
  { scenario: 'enqueue', metric: 'rate', title: 'Jobs enqueued per second, one by one' },
  { scenario: 'processes', metric: 'several', title: 'Jobs drained per second by 10 processes on one file' },
]

export function panelsOf(results: readonly ScenarioRuns[]): Panel[] {
  return SHOWN.flatMap(({ scenario, metric, title }) => {
    const result = results.find((each) => each.scenario === scenario)
    const shown = result?.runs[0]?.metrics.find((each) => each.key === metric)
    const bars = result === undefined || shown === undefined ? [] : barsOf(result, shown)
    return bars.length === 0 ? [] : [{ title, bars }]
  })
}

function barsOf({ runs }: ScenarioRuns, metric: Metric): Bar[] {
  const contenders = runs.at(-1)?.contenders ?? []
  return contenders.flatMap(({ name, title: label }) => {
    const value = middleOf(runs.map((run) => run.contenders.find((each) => each.name === name)?.figures[metric.key]))
    if (value === undefined || Number.isNaN(value)) return []
    return [{ label, value, text: formatWithUnit(value, metric.unit), ours: name.startsWith('millrace') }]
  })
}

const WIDTH = 760
const LABEL_WIDTH = 210
const TEXT_WIDTH = 100
const BAR_HEIGHT = 20
const BAR_STEP = 27
const TITLE_HEIGHT = 34
const PANEL_GAP = 18
const MARGIN = 12

const STYLE = `
    text { font: 13px system-ui, sans-serif; fill: #1f2328 }
    .title { font-weight: 600 }
    .ours { fill: #1a7f64 }
    .other { fill: #8c959f }
    @media (prefers-color-scheme: dark) {
      text { fill: #e6edf3 }
      .ours { fill: #3fb68f }
      .other { fill: #6e7681 }
    }`

export function renderSvg(panels: readonly Panel[]): string {
  const parts: string[] = []
  let y = MARGIN
  for (const panel of panels) {
    parts.push(`<text class="title" x="${MARGIN}" y="${y + 16}">${escapeXml(panel.title)}</text>`)
    y += TITLE_HEIGHT
    const longest = Math.max(...panel.bars.map((bar) => bar.value))
    for (const bar of panel.bars) {
      parts.push(...renderBar(bar, longest, y))
      y += BAR_STEP
    }
    y += PANEL_GAP
  }
  const height = y - PANEL_GAP + MARGIN
  const title = escapeXml(panels.map((panel) => panel.title).join('; '))
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img">`,
    `  <title>${title}</title>`,
    `  <style>${STYLE}\n  </style>`,
    ...parts.map((part) => `  ${part}`),
    '</svg>\n',
  ].join('\n')
}

function renderBar(bar: Bar, longest: number, y: number): string[] {
  const room = WIDTH - 2 * MARGIN - LABEL_WIDTH - TEXT_WIDTH
  const width = longest > 0 ? Math.max(1, Math.round((bar.value / longest) * room)) : 1
  const x = MARGIN + LABEL_WIDTH
  const middle = y + BAR_HEIGHT / 2 + 5
  return [
    `<text x="${x - 10}" y="${middle}" text-anchor="end">${escapeXml(bar.label)}</text>`,
    `<rect class="${bar.ours ? 'ours' : 'other'}" x="${x}" y="${y}" width="${width}" height="${BAR_HEIGHT}" rx="3"/>`,
    `<text x="${x + width + 8}" y="${middle}">${escapeXml(bar.text)}</text>`,
  ]
}

function escapeXml(text: string): string {
  return text.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;').replace(/"/g, '&quot;')
}
