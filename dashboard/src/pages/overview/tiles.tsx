import { hasFacet, useSession } from '../../api/context.ts'
import type { Overview } from '../../api/shapes.ts'
import { brief, rate, whole } from '../../parts/format.ts'
import { Spark } from '../../parts/spark.tsx'
import type { Tone } from '../../parts/words.ts'
import { routeTo } from '../../router/route.ts'
import { totalCounts } from '../../shell/overview-context.ts'
import { downsample } from './downsample.ts'
import type { History } from './use-history.ts'

const SPARK = { rangeMs: 180_000, pointsMax: 30 }

interface Tile {
  readonly title: string
  readonly hint: string
  readonly count: number
  readonly tone: Tone
  readonly href: string | null
  readonly values: readonly number[]
}

/** The states of a job from left to right, and the dead letters. Each links to its jobs. */
export function Tiles(props: { readonly overview: Overview; readonly history: History }) {
  const tiles = useTiles(props)
  return (
    <ul class="tiles">
      {tiles.map((tile) => (
        <li key={tile.title} class={`tile tone-${tile.tone}`}>
          <TileBody {...tile} />
        </li>
      ))}
    </ul>
  )
}

function TileBody({ title, hint, count, href, values }: Tile) {
  const body = (
    <>
      <span class="tile-title">{title}</span>
      <span class="tile-count figures" title={whole(count)}>
        {brief(count)}
      </span>
      <span class="tile-hint">{hint}</span>
      <Spark values={values} />
    </>
  )
  return href === null ? <div class="tile-body">{body}</div> : <a class="tile-body" href={href} children={body} />
}

function useTiles(props: { readonly overview: Overview; readonly history: History }): readonly Tile[] {
  const session = useSession()
  const counts = totalCounts(props.overview)
  const recent = downsample(props.history.points, { ...SPARK, stepMs: props.history.stepMs })
  const to = (state: string): string | null =>
    hasFacet(session, state === 'in_progress' ? 'inspection' : 'listingByState')
      ? routeTo('jobs', null, { state })
      : null
  const desk = hasFacet(session, 'deadLetters') ? routeTo('dead-letters') : to('dead_letter')
  const perSecond = props.history.points.at(-1)?.completedPerSecond ?? null
  const row = (name: 'delayed' | 'ready' | 'inProgress' | 'dead'): readonly number[] =>
    recent.map((point) => point[name] ?? 0)
  const done = perSecond === null ? 'in all' : `${rate(perSecond)} now`
  return [
    {
      title: 'Delayed',
      hint: 'due later',
      count: counts.delayed,
      tone: 'quiet',
      href: to('queued'),
      values: row('delayed'),
    },
    {
      title: 'Ready',
      hint: 'waiting for a worker',
      count: counts.ready,
      tone: 'wait',
      href: to('queued'),
      values: row('ready'),
    },
    {
      title: 'Running',
      hint: 'now',
      count: counts.inProgress,
      tone: 'run',
      href: to('in_progress'),
      values: row('inProgress'),
    },
    {
      title: 'Completed',
      hint: done,
      count: counts.completed,
      tone: 'good',
      href: to('completed'),
      values: recent.map((point) => point.completedPerSecond ?? 0),
    },
    { title: 'Dead letters', hint: 'need attention', count: counts.dead, tone: 'bad', href: desk, values: row('dead') },
  ]
}
