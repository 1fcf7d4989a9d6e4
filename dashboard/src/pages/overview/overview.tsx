import { useSession } from '../../api/context.ts'
import type { Overview } from '../../api/shapes.ts'
import { Badge } from '../../parts/badge.tsx'
import { counted } from '../../parts/format.ts'
import { PageFrame } from '../../parts/page.tsx'
import { Loading } from '../../parts/states.tsx'
import { Since } from '../../parts/time.tsx'
import { healthLabel } from '../../parts/words.ts'
import { type Page, type Route, routeTo } from '../../router/route.ts'
import { replaceRoute } from '../../router/use-route.ts'
import { placesFor } from '../../shell/navigation.ts'
import { totalCounts, useOverview } from '../../shell/overview-context.ts'
import { HistoryCharts, rangeIn } from '../history/history-charts.tsx'
import { Callouts } from './callouts.tsx'
import { FirstJob } from './first-job.tsx'
import { Tiles } from './tiles.tsx'
import { TypesTable } from './types-table.tsx'
import { useHistory } from './use-history.ts'

export function OverviewPage({ query }: { readonly query: Route['query'] }) {
  const overview = useOverview()
  const history = useHistory()
  return (
    <PageFrame title="Overview" lead={overview === null ? undefined : <Summary overview={overview} />}>
      {overview === null ? (
        <Loading rows={6} />
      ) : (
        <>
          <Callouts overview={overview} />
          <Tiles overview={overview} history={history} />
          {isUnused(overview) ? (
            <FirstJob />
          ) : (
            <HistoryCharts
              range={rangeIn(query)}
              choose={(range) => replaceRoute(routeTo('overview', null, { range }))}
              live={history}
            />
          )}
          <TypesTable overview={overview} />
        </>
      )}
    </PageFrame>
  )
}

function isUnused(overview: Overview): boolean {
  return Object.values(totalCounts(overview)).every((count) => count === 0)
}

type Reason = Overview['reasons'][number]

const SEEN_ON: Readonly<Record<Reason['check'], Page | null>> = {
  engine: null,
  workers: 'workers',
  queues: 'queues',
  deadLetters: 'dead-letters',
}

/** Why it is not healthy, each reason linked to the page that shows it. */
function Reasons({ reasons }: { readonly reasons: readonly Reason[] }) {
  const places = new Set(placesFor(useSession()).map(({ page }) => page))
  if (reasons.length === 0) return null
  return (
    // biome-ignore lint/a11y/useSemanticElements: it stands in a paragraph, which cannot hold a list
    <span class="reasons" role="list" aria-label="Why it is not healthy">
      {reasons.map(({ check, text }) => {
        const page = SEEN_ON[check]
        return (
          // biome-ignore lint/a11y/useSemanticElements: as above
          <span key={text} role="listitem">
            {page !== null && places.has(page) ? <a href={routeTo(page)}>{text}</a> : text}
          </span>
        )
      })}
    </span>
  )
}

/** The summary in one line. */
function Summary({ overview }: { readonly overview: Overview }) {
  const { health, workers, oldestWaitingMs, atMs, reasons } = overview
  return (
    <span class="summary">
      <Badge {...healthLabel(health)} />
      <Reasons reasons={reasons} />
      {workers > 0 && <span>{counted(workers, 'worker')} running</span>}
      {workers === 0 && !reasons.some(({ check }) => check === 'workers') && <span>No worker is running</span>}
      <span>
        {oldestWaitingMs === null ? (
          'Nothing is waiting'
        ) : (
          <>
            The oldest due job has waited <Since atMs={atMs - oldestWaitingMs} />
          </>
        )}
      </span>
    </span>
  )
}
