import { useEffect, useId, useRef, useState } from 'preact/hooks'
import type { Answer, Routes } from '../../api/shapes.ts'
import { useAnswer } from '../../api/use-answer.ts'
import { Icon } from '../../parts/icon.tsx'
import { PageFrame } from '../../parts/page.tsx'
import { Pagination, useTrail } from '../../parts/pages.tsx'
import { LookedAt, SearchField } from '../../parts/search-field.tsx'
import { NOTHING, type Selected } from '../../parts/selection.ts'
import { Answered, EmptyState } from '../../parts/states.tsx'
import { type Route, routeTo } from '../../router/route.ts'
import { replaceRoute } from '../../router/use-route.ts'
import { totalCounts, useOverview } from '../../shell/overview-context.ts'
import { TypeSelect } from '../jobs/filters.tsx'
import { BulkBar } from './bulk-bar.tsx'
import { BulkDialog, type BulkKind } from './bulk-dialog.tsx'
import { Groups } from './groups.tsx'
import { LettersTable } from './letters-table.tsx'
import { Operations, useOperations } from './operations.tsx'
import { type LetterFilter, type Selection, selectionOf } from './selection-words.ts'

const PAGE_ROWS = 50

interface Asked {
  readonly kind: BulkKind
  readonly selection: Selection
}

export function DeadLettersPage({ query }: { readonly query: Route['query'] }) {
  const { type, fingerprint } = query
  const search = query.search?.trim() === '' ? undefined : query.search?.trim()
  const filter: LetterFilter = { type, fingerprint, search }
  const place = JSON.stringify(filter)
  const trail = useTrail(place)
  const letters = useAnswer('listDeadLetters', {
    query: { ...filter, limit: PAGE_ROWS, ...(trail.cursor !== undefined && { cursor: trail.cursor }) },
  })
  const groups = useAnswer('groupDeadLetters', { query: { type, search } })
  const [selected, setSelected] = useState<Selected>(NOTHING)
  const [asked, setAsked] = useState<Asked | null>(null)
  const reload = async (): Promise<void> => {
    await Promise.all([letters.reload(), groups.reload()])
  }
  const operations = useOperations(() => void reload())
  // A selection does not apply to another filter.
  useEffect(() => setSelected(NOTHING), [place])
  return (
    <PageFrame
      title="Dead letters"
      lead="Jobs that failed for good. Open one to read why and fix its payload, or replay many at once."
    >
      <Operations operations={operations} />
      <LetterFilters filter={filter} />
      <Answered of={groups} rows={2}>
        {(value) => <Groups {...value} chosen={filter} act={(kind, selection) => setAsked({ kind, selection })} />}
      </Answered>
      <Changed type={filter.type} at={letters.value} refresh={() => void reload()} />
      <Answered of={letters} rows={6}>
        {({ items }) =>
          items.length === 0 ? (
            <NoLetters isFiltered={Object.values(filter).some((part) => part !== undefined)} />
          ) : (
            <LettersTable letters={items} selected={selected} onSelect={setSelected} />
          )
        }
      </Answered>
      <LookedAt
        searched={letters.value?.searched}
        next={(letters.value?.items.length ?? 0) < PAGE_ROWS ? (letters.value?.next ?? null) : null}
        onward={trail.onward}
      />
      <Pagination trail={trail} next={letters.value?.next ?? null} />
      <BulkBar
        selected={selected}
        filter={{ ...filter, beforeMs: shownBeforeMs(groups.value) }}
        hasMore={letters.value?.next !== null || trail.page > 1}
        onSelect={setSelected}
        act={(kind) =>
          setAsked({ kind, selection: selectionOf(selected, { ...filter, beforeMs: shownBeforeMs(groups.value) }) })
        }
      />
      {asked !== null && (
        <BulkDialog
          {...asked}
          onClose={() => setAsked(null)}
          onStarted={(operation) => {
            operations.follow(operation, 'ids' in asked.selection ? asked.selection.ids : [])
            setAsked(null)
            setSelected(NOTHING)
          }}
        />
      )}
    </PageFrame>
  )
}

/** The groups are loaded with the list, so that both show the same letters. */
function shownBeforeMs(counted: Answer<Routes['groupDeadLetters']> | null): number | undefined {
  return counted === null || 'ids' in counted.selection ? undefined : counted.selection.beforeMs
}

function filterOf({ type, fingerprint }: LetterFilter) {
  return { type, fingerprint }
}

function LetterFilters({ filter }: { readonly filter: LetterFilter }) {
  const id = useId()
  return (
    <search class="filters">
      <div class="filter-type">
        <label for={id}>Type</label>
        <TypeSelect
          id={id}
          value={filter.type ?? ''}
          choose={(type) => replaceRoute(routeTo('dead-letters', null, { type, search: filter.search }))}
        />
      </div>
      <SearchField
        label="Search dead letters"
        value={filter.search ?? ''}
        search={(search) => replaceRoute(routeTo('dead-letters', null, { ...filterOf(filter), search }))}
      />
      {filter.fingerprint !== undefined && (
        <a class="button" href={routeTo('dead-letters', null, { type: filter.type, search: filter.search })}>
          <Icon name="cross" />
          One cause: show all
        </a>
      )}
    </search>
  )
}

interface ChangedProps {
  readonly type: string | undefined
  /** Changes with every answer. */
  readonly at: unknown
  readonly refresh: () => void
}

/** Selected rows must not move, so a changed list says so and waits. */
function Changed({ type, at, refresh }: ChangedProps) {
  const overview = useOverview()
  const dead = type === undefined ? totalCounts(overview).dead : (overview?.counts[type]?.dead ?? 0)
  const seen = useRef<{ readonly at: unknown; readonly dead: number } | null>(null)
  if (overview !== null && seen.current?.at !== at) seen.current = { at, dead }
  const isChanged = seen.current !== null && seen.current.dead !== dead
  return (
    <div class="news" role="status">
      {isChanged && (
        <button type="button" class="button small" onClick={refresh}>
          <Icon name="again" />
          The list has changed: refresh
        </button>
      )}
    </div>
  )
}

function NoLetters({ isFiltered }: { readonly isFiltered: boolean }) {
  if (isFiltered) {
    return (
      <EmptyState icon="check" title="None of this kind">
        <p>They were replayed or discarded, or the filter fits none.</p>
        <a class="button" href={routeTo('dead-letters')}>
          Show all dead letters
        </a>
      </EmptyState>
    )
  }
  return (
    <EmptyState icon="check" title="No dead letters">
      <p>A job comes here when its last attempt has failed, or when its error says that trying again cannot help.</p>
      <p>Until then there is nothing to repair.</p>
    </EmptyState>
  )
}
