import { useId } from 'preact/hooks'
import { hasFacet, useSession } from '../../api/context.ts'
import { Segment } from '../../parts/fields.tsx'
import { SearchField } from '../../parts/search-field.tsx'
import { type Route, routeTo } from '../../router/route.ts'
import { replaceRoute } from '../../router/use-route.ts'
import { useOverview } from '../../shell/overview-context.ts'

export const STATES = [
  { state: 'queued', text: 'Queued' },
  { state: 'in_progress', text: 'Running' },
  { state: 'completed', text: 'Completed' },
  { state: 'dead_letter', text: 'Dead letters' },
  { state: 'cancelled', text: 'Cancelled' },
  { state: 'superseded', text: 'Superseded' },
  { state: 'discarded', text: 'Discarded' },
] as const

export interface JobFilter {
  readonly state?: (typeof STATES)[number]['state'] | undefined
  readonly type?: string | undefined
  readonly search?: string | undefined
}

export function readFilter(query: Route['query']): JobFilter {
  const search = query.search?.trim()
  return {
    state: STATES.find(({ state }) => state === query.state)?.state,
    type: query.type === '' ? undefined : query.type,
    search: search === '' ? undefined : search,
  }
}

function set(filter: JobFilter, change: Partial<Record<keyof JobFilter, string>>): void {
  replaceRoute(routeTo('jobs', null, { ...filter, ...change }))
}

export function Filters({ filter, takesFocus }: { readonly filter: JobFilter; readonly takesFocus: boolean }) {
  const typeId = useId()
  // A log can be asked for what runs, and for no other state.
  const listsAll = hasFacet(useSession(), 'listingByState')
  const shown = listsAll ? STATES : STATES.filter(({ state }) => state === 'in_progress')
  return (
    <search class="filters">
      <fieldset class="segments">
        <legend class="unseen">State</legend>
        <Segment
          group="state"
          text="All"
          isChosen={filter.state === undefined}
          choose={() => set(filter, { state: '' })}
        />
        {shown.map(({ state, text }) => (
          <Segment
            key={state}
            group="state"
            text={text}
            isChosen={filter.state === state}
            choose={() => set(filter, { state })}
          />
        ))}
      </fieldset>
      <div class="filter-type">
        <label for={typeId}>Type</label>
        <TypeSelect id={typeId} value={filter.type ?? ''} choose={(type) => set(filter, { type })} />
      </div>
      <SearchField
        label="Search jobs"
        value={filter.search ?? ''}
        takesFocus={takesFocus}
        search={(search) => set(filter, { search })}
      />
    </search>
  )
}

interface TypeSelectProps {
  readonly id: string
  readonly value: string
  readonly choose: (type: string) => void
}

export function TypeSelect({ id, value, choose }: TypeSelectProps) {
  const known = Object.keys(useOverview()?.counts ?? {})
  const types = value === '' || known.includes(value) ? known : [...known, value]
  return (
    <select id={id} value={value} onChange={(event) => choose(event.currentTarget.value)}>
      <option value="">All types</option>
      {types.toSorted().map((type) => (
        <option key={type} value={type}>
          {type}
        </option>
      ))}
    </select>
  )
}
