import type { JobTable, JobTables } from '../../api/shapes.ts'
import { Badge } from '../../parts/badge.tsx'
import { duration, whole } from '../../parts/format.ts'
import { type Column, Table } from '../../parts/table.tsx'

type Rows = NonNullable<JobTable['rows']>

export function Tables({ all: { tables, countMax } }: { readonly all: JobTables }) {
  const figure = (key: string, title: string, count: (rows: Rows) => number): Column<JobTable> => ({
    key,
    title,
    align: 'end',
    cell: ({ rows }) => <span class="figures">{rows === null ? '–' : counted(count(rows), countMax)}</span>,
  })
  const columns: readonly Column<JobTable>[] = [
    {
      key: 'table',
      title: 'Table',
      wide: true,
      narrow: 'lead',
      cell: (one) => (
        <div class="endpoint">
          <strong>{one.table}</strong>
          <div>
            <State table={one} />
          </div>
        </div>
      ),
    },
    figure('queued', 'Queued', ({ counts }) => counts.queued),
    figure('processing', 'Processing', ({ counts }) => counts.processing),
    figure('completed', 'Completed', ({ counts }) => counts.completed),
    figure('failed', 'Failed', ({ counts }) => counts.failed),
    figure('exhausted', 'Exhausted', ({ exhausted }) => exhausted),
    figure('stuck', 'Stuck', ({ stuck }) => stuck),
    { key: 'due', title: 'Oldest due', align: 'end', cell: ({ rows }) => <OldestDue rows={rows} /> },
  ]
  return (
    <div class="card flush">
      <Table caption="Job tables" columns={columns} rows={tables} keyOf={({ table }) => table} />
    </div>
  )
}

/** Counting stops at a limit. */
function counted(count: number, max: number): string {
  return count >= max ? `${whole(max)}+` : whole(count)
}

function OldestDue({ rows }: { readonly rows: Rows | null }) {
  if (rows === null || rows.due === 0) return <span class="quiet">{rows === null ? '–' : 'none'}</span>
  return <span class="figures">{rows.dueMs === null ? 'unknown' : duration(rows.dueMs)}</span>
}

function State({ table: { isReady, rows } }: { readonly table: JobTable }) {
  if (!isReady || rows === null) return <Badge text="Not ready" tone="bad" icon="cross" />
  if (rows.stuck > 0) return <Badge text="Rows stuck" tone="warn" icon="warn" />
  return <Badge text="In order" tone="good" icon="check" />
}
