import { useEffect, useRef } from 'preact/hooks'
import type { Letter } from '../../api/shapes.ts'
import { shortId } from '../../parts/format.ts'
import { JobId } from '../../parts/id.tsx'
import { isSelected, pageState, type Selected, selectRange, toggle, togglePage } from '../../parts/selection.ts'
import { type Column, Table } from '../../parts/table.tsx'
import { Tags } from '../../parts/tags.tsx'
import { MaybeAgo } from '../../parts/time.tsx'
import { routeTo } from '../../router/route.ts'

interface LettersTableProps {
  readonly letters: readonly Letter[]
  readonly selected: Selected
  readonly onSelect: (selected: Selected) => void
}

const COLUMNS: readonly Column<Letter>[] = [
  { key: 'id', title: 'Job', narrow: 'plain', cell: ({ job }) => <JobId id={job.id} page="dead-letters" /> },
  {
    key: 'type',
    title: 'Type',
    narrow: 'lead',
    cell: ({ job }) => (
      <span class="name" title={job.type}>
        {job.type}
      </span>
    ),
  },
  {
    key: 'error',
    title: 'Why it died',
    wide: true,
    narrow: 'line',
    cell: ({ job, error }) => (
      <span class="what">
        <a class="plain cut" href={routeTo('dead-letters', job.id)} title={error.message}>
          {error.message}
        </a>
        <Tags tags={job.tags} page="dead-letters" />
      </span>
    ),
  },
  {
    key: 'attempt',
    title: 'Attempts',
    align: 'end',
    cell: ({ job }) => <span class="figures">{job.attempt}</span>,
  },
  {
    key: 'replays',
    title: 'Replays',
    align: 'end',
    cell: ({ job }) => <span class={`figures ${job.replays === 0 ? 'quiet' : ''}`}>{job.replays}</span>,
  },
  {
    key: 'died',
    title: 'Died',
    align: 'end',
    narrow: 'corner',
    cell: ({ job }) => <MaybeAgo atMs={job.completedAtMs ?? job.updatedAtMs} />,
  },
]

export function LettersTable({ letters, selected, onSelect }: LettersTableProps) {
  const ids = letters.map(({ job }) => job.id)
  const lastTicked = useRef<string | null>(null)
  const tick = (id: string, isRange: boolean): void => {
    const from = isRange ? lastTicked.current : null
    lastTicked.current = id
    onSelect(from === null ? toggle(selected, id) : selectRange(selected, ids, from, id))
  }
  const box: Column<Letter> = {
    key: 'box',
    title: 'Select',
    narrow: 'first',
    head: <PageBox state={pageState(selected, ids)} onChange={() => onSelect(togglePage(selected, ids))} />,
    cell: ({ job }) => (
      <input
        type="checkbox"
        aria-label={`Select ${job.type} ${shortId(job.id)}`}
        checked={isSelected(selected, job.id)}
        // A change does not tell whether Shift is held.
        onClick={(event) => tick(job.id, event.shiftKey)}
      />
    ),
  }
  return (
    <div class="card flush">
      <Table
        caption="Dead letters, the newest death first"
        columns={[box, ...COLUMNS]}
        rows={letters}
        keyOf={({ job }) => job.id}
        rowClass={({ job }) => (isSelected(selected, job.id) ? 'chosen' : '')}
      />
    </div>
  )
}

function PageBox({ state, onChange }: { readonly state: 'all' | 'some' | 'none'; readonly onChange: () => void }) {
  const box = useRef<HTMLInputElement>(null)
  useEffect(() => {
    if (box.current !== null) box.current.indeterminate = state === 'some'
  }, [state])
  return (
    <input
      ref={box}
      type="checkbox"
      aria-label="Select all on this page"
      checked={state === 'all'}
      onChange={onChange}
    />
  )
}
