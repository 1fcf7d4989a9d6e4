import type { Overview } from '../../api/shapes.ts'
import { Badge } from '../../parts/badge.tsx'
import { counted, duration } from '../../parts/format.ts'
import { PageFrame } from '../../parts/page.tsx'
import { Loading } from '../../parts/states.tsx'
import { healthLabel } from '../../parts/words.ts'
import { totalCounts, useOverview } from '../../shell/overview-context.ts'
import { Callouts } from './callouts.tsx'
import { Charts } from './charts.tsx'
import { FirstJob } from './first-job.tsx'
import { Tiles } from './tiles.tsx'
import { TypesTable } from './types-table.tsx'
import { useHistory } from './use-history.ts'

export function OverviewPage() {
  const overview = useOverview()
  const points = useHistory()
  return (
    <PageFrame title="Overview" lead={overview === null ? undefined : <Summary overview={overview} />}>
      {overview === null ? (
        <Loading rows={6} />
      ) : (
        <>
          <Callouts overview={overview} />
          <Tiles overview={overview} points={points} />
          {isUnused(overview) ? <FirstJob /> : <Charts points={points} />}
          <TypesTable overview={overview} />
        </>
      )}
    </PageFrame>
  )
}

function isUnused(overview: Overview): boolean {
  return Object.values(totalCounts(overview)).every((count) => count === 0)
}

/** The summary in one line. */
function Summary({ overview }: { readonly overview: Overview }) {
  const { health, workers, oldestWaitingMs } = overview
  return (
    <span class="summary">
      <Badge {...healthLabel(health)} />
      <span>{workers === 0 ? 'No worker is running' : `${counted(workers, 'worker')} running`}</span>
      <span>
        {oldestWaitingMs === null ? 'Nothing is waiting' : `The oldest due job has waited ${duration(oldestWaitingMs)}`}
      </span>
    </span>
  )
}
