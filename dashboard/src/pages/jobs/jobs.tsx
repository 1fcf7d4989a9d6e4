import { useEffect, useState } from 'preact/hooks'
import { ActButton } from '../../parts/fields.tsx'
import { counted } from '../../parts/format.ts'
import { Icon } from '../../parts/icon.tsx'
import { PageFrame } from '../../parts/page.tsx'
import { Pagination, type Trail, useTrail } from '../../parts/pages.tsx'
import { LookedAt } from '../../parts/search-field.tsx'
import { Answered, EmptyState, Loading } from '../../parts/states.tsx'
import { type Route, routeTo } from '../../router/route.ts'
import { FirstJob } from '../overview/first-job.tsx'
import { EnqueueDialog } from './enqueue.tsx'
import { Filters, readFilter } from './filters.tsx'
import { JobsTable } from './jobs-table.tsx'
import { PAGE_ROWS, type Searched, type ShownJobs, useJobs } from './use-jobs.ts'

export function JobsPage({ query }: { readonly query: Route['query'] }) {
  const filter = readFilter(query)
  const trail = useTrail(JSON.stringify(filter))
  const jobs = useJobs(filter, trail)
  // A full page says nothing of what was not looked at.
  const { items = [], next = null, searched = null } = jobs.loaded.value ?? {}
  const shortNext = items.length < PAGE_ROWS ? next : null
  const isFiltered = Object.values(filter).some((value) => value !== undefined)
  const [isEnqueuing, setEnqueuing] = useState(false)
  const enqueue = (
    <ActButton icon="plus" needs="operator" onClick={() => setEnqueuing(true)}>
      Enqueue a job
    </ActButton>
  )
  return (
    <PageFrame
      title="Jobs"
      lead="Newest first. Rows change in place; newer ones wait until you ask for them."
      actions={enqueue}
    >
      <Filters filter={filter} takesFocus={query.focus === 'search'} />
      <div class="news" role="status">
        {jobs.newer > 0 && (
          <button type="button" class="button small" onClick={jobs.showNewest}>
            <Icon name="again" />
            {jobs.newer >= PAGE_ROWS ? 'Many newer jobs' : counted(jobs.newer, 'newer job')}: show
          </button>
        )}
      </div>
      <Answered of={jobs.loaded} rows={8}>
        {(value) => <Rows jobs={jobs} isFiltered={isFiltered} {...value} trail={trail} />}
      </Answered>
      {(jobs.rows?.length ?? 0) > 0 && !jobs.isTurning && (
        <LookedAt searched={searched} next={shortNext} onward={trail.onward} />
      )}
      <Pagination trail={trail} next={next} />
      {isEnqueuing && <EnqueueDialog onClose={() => setEnqueuing(false)} />}
    </PageFrame>
  )
}

interface RowsProps extends NoJobsProps {
  readonly jobs: ShownJobs
}

/** The previous rows stay, dimmed, until the new ones are loaded. */
function Rows({ jobs: { rows, isTurning }, ...none }: RowsProps) {
  if (rows !== null && rows.length > 0) return <JobsTable rows={rows} isDimmed={isTurning} />
  return isTurning ? <Loading rows={3} /> : <NoJobs {...none} />
}

const LOOKED_THROUGH_MAX = 25

interface NoJobsProps {
  readonly isFiltered: boolean
  readonly next: string | null
  readonly searched: Searched
  readonly trail: Trail
}

/** A search covers some of the jobs at a time. While it finds nothing, the page continues for a while. */
function NoJobs({ isFiltered, next, searched, trail }: NoJobsProps) {
  const goesOn = next !== null && trail.page % LOOKED_THROUGH_MAX !== 0
  const { onward } = trail
  useEffect(() => {
    if (goesOn) onward(next)
  }, [goesOn, next])
  if (!isFiltered) return <FirstJob />
  if (goesOn) return <Loading rows={3} />
  return (
    <EmptyState icon="search" title={next === null ? 'No matching jobs' : 'Nothing found yet'}>
      <p>
        {next === null
          ? 'Words are looked for in ids, types, keys, tenants, tags and errors; a term such as payload.customer.id:42 in payloads.'
          : 'Older jobs have not been searched yet.'}
      </p>
      {next === null ? (
        <a class="button" href={routeTo('jobs')}>
          Show all jobs
        </a>
      ) : (
        <LookedAt searched={searched} next={next} onward={onward} />
      )}
    </EmptyState>
  )
}
