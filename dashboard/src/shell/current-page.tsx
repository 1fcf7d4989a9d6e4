import { useSession } from '../api/context.ts'
import { AlertsPage } from '../pages/alerts.tsx'
import { AuditPage } from '../pages/audit.tsx'
import { DeadLetterPage } from '../pages/dead-letter/dead-letter.tsx'
import { DeadLettersPage } from '../pages/dead-letters/dead-letters.tsx'
import { JobPage } from '../pages/job/job.tsx'
import { JobsPage } from '../pages/jobs/jobs.tsx'
import { OverviewPage } from '../pages/overview/overview.tsx'
import { QueuesPage } from '../pages/queues.tsx'
import { SchedulesPage } from '../pages/schedules/schedules.tsx'
import { TablesPage } from '../pages/tables/tables.tsx'
import { TopicsPage } from '../pages/topics.tsx'
import { TypePage } from '../pages/type/type.tsx'
import { WebhooksPage } from '../pages/webhooks/webhooks.tsx'
import { WorkersPage } from '../pages/workers.tsx'
import { PageFrame } from '../parts/page.tsx'
import { EmptyState } from '../parts/states.tsx'
import { type Page, type Route, routeTo } from '../router/route.ts'
import { NAVIGATION } from './navigation.ts'

export function CurrentPage({ route }: { readonly route: Route }) {
  const session = useSession()
  const { page, id, query } = route
  if (page === null) return <Nowhere />
  const place = NAVIGATION.find((one) => one.page === page)
  if (place?.needs && session.facets[place.needs] !== true) {
    if (place.needs === 'webhooks') return <NoWebhooksHere />
    if (place.needs === 'tables') return <NoTablesHere />
    return <NotHere title={place.title} lacks={place.lacks} />
  }
  return <PageOf page={page} id={id} query={query} />
}

function PageOf({ page, id, query }: { page: Page; id: string | null; query: Route['query'] }) {
  switch (page) {
    case 'overview':
      return <OverviewPage query={query} />
    case 'jobs':
      return id === null ? <JobsPage query={query} /> : <JobPage key={id} id={id} />
    case 'dead-letters':
      return id === null ? <DeadLettersPage query={query} /> : <DeadLetterPage key={id} id={id} />
    case 'workers':
      return <WorkersPage />
    case 'schedules':
      return <SchedulesPage />
    case 'queues':
      return id === null ? <QueuesPage /> : <TypePage key={id} type={id} query={query} />
    case 'topics':
      return <TopicsPage />
    case 'tables':
      return <TablesPage />
    case 'webhooks':
      return <WebhooksPage query={query} />
    case 'alerts':
      return <AlertsPage />
    case 'audit':
      return <AuditPage query={query} />
    default:
      return page satisfies never
  }
}

function ToOverview() {
  return (
    <a class="button" href={routeTo('overview')}>
      To the overview
    </a>
  )
}

function NotHere({ title, lacks }: { readonly title: string; readonly lacks: string }) {
  const { engine } = useSession()
  return (
    <PageFrame title={title}>
      <EmptyState icon="warn" title="Not on this engine">
        <p>
          The engine here, {engine}, {lacks}, so this page has nothing to show. Nothing is wrong.
        </p>
        <ToOverview />
      </EmptyState>
    </PageFrame>
  )
}

function NoWebhooksHere() {
  return (
    <PageFrame title="Webhooks">
      <EmptyState icon="webhooks" title="No webhooks here">
        <p>
          Their tables are in an SQLite or Postgres store. This one has none, or this server was started before they
          were created: <code>millrace migrate --workload webhooks</code>
        </p>
        <ToOverview />
      </EmptyState>
    </PageFrame>
  )
}

function NoTablesHere() {
  return (
    <PageFrame title="Job tables">
      <EmptyState icon="tables" title="No job tables here">
        <p>
          This page shows tables of your own in Postgres. Name them when you start the server:{' '}
          <code>millrace serve --tables jobs,asr_jobs --tables-url postgres://…</code>
        </p>
        <ToOverview />
      </EmptyState>
    </PageFrame>
  )
}

function Nowhere() {
  return (
    <PageFrame title="No such page">
      <EmptyState icon="search" title="There is no such page">
        <p>The link may be incomplete.</p>
        <ToOverview />
      </EmptyState>
    </PageFrame>
  )
}
