import type { GraphNode } from '../../api/shapes.ts'
import { useAnswer } from '../../api/use-answer.ts'
import { useFresh } from '../../live/context.ts'
import { shortId } from '../../parts/format.ts'
import { Card } from '../../parts/page.tsx'
import { stateLabel } from '../../parts/words.ts'
import { routeTo } from '../../router/route.ts'
import { layOut, type Placed } from './layout.ts'

const WIDTH = 150
const HEIGHT = 44
const ACROSS = 50
const DOWN = 16

const xOf = ({ column }: Placed): number => column * (WIDTH + ACROSS) + 1
const yOf = ({ row }: Placed): number => row * (HEIGHT + DOWN) + 1

interface GraphProps {
  readonly nodes: readonly GraphNode[]
  readonly current: string
}

/** All that the job comes after, and all that comes after it, with their states. */
export function WholeFlow({ id, isLive }: { readonly id: string; readonly isLive: boolean }) {
  const flow = useAnswer('showJobFlow', { params: { id } })
  // What comes after a finished job may still run.
  useFresh(flow.reload, { on: ['jobs'], atMostEveryMs: 2_000, everyMs: isLive ? 3_000 : 15_000 })
  const { nodes, cut: isCut } = flow.value ?? { nodes: [], cut: false }
  if (nodes.length < 2) return null
  return (
    <Card title="Its flow">
      <Graph nodes={nodes} current={id} />
      {isCut && <p class="quiet">There are more jobs in this flow than the {nodes.length} nearest, which are shown.</p>}
      {!isLive && (
        <p class="quiet">Finished successors are looked for among the thousand jobs that were enqueued next.</p>
      )}
    </Card>
  )
}

/** What comes first is on the left. Each is a link. */
function Graph({ nodes, current }: GraphProps) {
  const { nodes: placed, edges, columns, rows } = layOut(nodes)
  const width = columns * (WIDTH + ACROSS) - ACROSS + 2
  const height = rows * (HEIGHT + DOWN) - DOWN + 2
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, and keyboard users need to reach it
    <section class="graph" tabIndex={0} aria-label="Jobs of this flow">
      <svg width={width} height={height} viewBox={`0 0 ${width} ${height}`}>
        <title>Which job comes after which</title>
        {edges.map(({ from, to }) => (
          <path key={`${from.id} ${to.id}`} class="graph-edge" d={curve(from, to)} />
        ))}
        {placed.map((node) => (
          <Node key={node.id} node={node} isCurrent={node.id === current} />
        ))}
      </svg>
    </section>
  )
}

function curve(from: Placed, to: Placed): string {
  const [x1, y1] = [xOf(from) + WIDTH, yOf(from) + HEIGHT / 2]
  const [x2, y2] = [xOf(to), yOf(to) + HEIGHT / 2]
  const bend = (x2 - x1) / 2
  return `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`
}

function Node({ node, isCurrent }: { readonly node: Placed; readonly isCurrent: boolean }) {
  const { text, tone } = labelOf(node.state)
  return (
    <a href={routeTo('jobs', node.id)} aria-current={isCurrent ? 'true' : undefined}>
      <g class={`graph-node tone-${tone}`}>
        <rect x={xOf(node)} y={yOf(node)} width={WIDTH} height={HEIGHT} rx={6} />
        <text x={xOf(node) + 12} y={yOf(node) + 19} class="graph-type">
          {cut(node.type === '' ? 'removed' : node.type)}
        </text>
        <text x={xOf(node) + 12} y={yOf(node) + 35} class="graph-state">
          {text} · {shortId(node.id).slice(-6)}
        </text>
      </g>
    </a>
  )
}

const cut = (text: string): string => (text.length <= 18 ? text : `${text.slice(0, 17)}…`)

function labelOf(state: string): { readonly text: string; readonly tone: string } {
  switch (state) {
    case 'queued':
    case 'in_progress':
    case 'completed':
    case 'failed':
    case 'dead_letter':
    case 'cancelled':
    case 'superseded':
    case 'discarded':
      return stateLabel({ state }, 0)
    default:
      return { text: state, tone: 'quiet' }
  }
}
