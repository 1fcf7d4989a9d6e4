import { useId } from 'preact/hooks'
import { useAnswer } from '../api/use-answer.ts'
import { useFresh } from '../live/context.ts'
import { shortId } from '../parts/format.ts'
import { Icon } from '../parts/icon.tsx'
import { PageFrame } from '../parts/page.tsx'
import { Pagination, useTrail } from '../parts/pages.tsx'
import { Answered, EmptyState } from '../parts/states.tsx'
import { type Route, routeTo } from '../router/route.ts'
import { replaceRoute } from '../router/use-route.ts'
import { AuditList } from './audit-list.tsx'
import { AUDIT_ACTIONS } from './audit-words.ts'

interface AuditFilter {
  readonly who: string | undefined
  readonly action: string | undefined
  readonly jobId: string | undefined
}

export function AuditPage({ query }: { readonly query: Route['query'] }) {
  const filter: AuditFilter = { who: query.who, action: query.action, jobId: query.jobId }
  const trail = useTrail(JSON.stringify(filter))
  const entries = useAnswer('listAudit', {
    query: { ...filter, ...(trail.cursor !== undefined && { cursor: trail.cursor }) },
  })
  useFresh(entries.reload, { on: ['operation'], atMostEveryMs: 3_000, everyMs: trail.page === 1 ? 10_000 : null })
  const isFiltered = Object.values(filter).some((value) => value !== undefined)
  return (
    <PageFrame
      title="Audit"
      lead="What was done by hand: who, when, why, and to what. Entries stay; erasing a job removes what they say about it."
    >
      <AuditFilters filter={filter} />
      <Answered of={entries}>
        {({ items }) =>
          items.length === 0 ? (
            <EmptyState icon="audit" title={isFiltered ? 'No entry fits' : 'Nothing was done by hand yet'}>
              <p>Replays, discards, cancellations, pauses and purges are written down here with who and why.</p>
            </EmptyState>
          ) : (
            <div class="card flush">
              <AuditList entries={items} />
            </div>
          )
        }
      </Answered>
      <Pagination trail={trail} next={entries.value?.next ?? null} />
    </PageFrame>
  )
}

function AuditFilters({ filter }: { readonly filter: AuditFilter }) {
  const actionId = useId()
  const whoId = useId()
  const change = (part: Partial<AuditFilter>): void => replaceRoute(routeTo('audit', null, { ...filter, ...part }))
  return (
    <search class="filters">
      <div class="filter-type">
        <label for={actionId}>Action</label>
        <select
          id={actionId}
          value={filter.action ?? ''}
          onChange={(event) => change({ action: event.currentTarget.value })}
        >
          <option value="">All</option>
          {AUDIT_ACTIONS.map((action) => (
            <option key={action} value={action}>
              {action}
            </option>
          ))}
        </select>
      </div>
      <div class="filter-type">
        <label for={whoId}>Who</label>
        <input
          id={whoId}
          value={filter.who ?? ''}
          placeholder="exact name"
          onChange={(event) => change({ who: event.currentTarget.value.trim() })}
        />
      </div>
      {filter.jobId !== undefined && (
        <a class="button" href={routeTo('audit')}>
          <Icon name="cross" />
          One job, {shortId(filter.jobId)}: show all
        </a>
      )}
    </search>
  )
}
