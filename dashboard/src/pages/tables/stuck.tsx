import type { JobTable, StuckRow } from '../../api/shapes.ts'
import { Badge } from '../../parts/badge.tsx'
import { ActButton } from '../../parts/fields.tsx'
import { Card } from '../../parts/page.tsx'
import { type Column, Table } from '../../parts/table.tsx'
import { Ago } from '../../parts/time.tsx'
import type { Ask } from './row-act.tsx'

interface Row extends StuckRow {
  readonly table: string
}

/** Rows whose lease has ended, before a reaper takes them. */
export function Stuck({ tables, ask }: { readonly tables: readonly JobTable[]; readonly ask: Ask }) {
  const rows = tables.flatMap(({ table, stuckRows }) => stuckRows.map((row) => ({ ...row, table })))
  const all = tables.reduce((sum, table) => sum + (table.rows?.stuck ?? 0), 0)
  const columns: readonly Column<Row>[] = [
    {
      key: 'row',
      title: 'Row',
      wide: true,
      narrow: 'lead',
      cell: ({ id, table, stage }) => (
        <div class="endpoint">
          <bdi>{id}</bdi>
          <div class="quiet">
            {table}
            {stage !== null && ` · ${stage}`}
          </div>
        </div>
      ),
    },
    { key: 'worker', title: 'Worker', cell: ({ lockedBy }) => <bdi>{lockedBy ?? '–'}</bdi> },
    { key: 'ended', title: 'Lease ended', cell: ({ endedAtMs }) => <Ago atMs={endedAtMs} /> },
    {
      key: 'attempt',
      title: 'Attempt',
      cell: ({ attempt, maxAttempts }) => <span class="figures">{`${attempt} of ${maxAttempts}`}</span>,
    },
    { key: 'next', title: 'The reaper will', cell: (row) => <Next row={row} /> },
    { key: 'act', title: 'Actions', narrow: 'line', cell: (row) => <Acts row={row} ask={ask} /> },
  ]
  if (rows.length === 0) return null
  return (
    <Card
      title="Stuck rows"
      look="flush"
      aside={all > rows.length ? <span class="quiet">the longest stuck first</span> : null}
    >
      <Table caption="Stuck rows" columns={columns} rows={rows} keyOf={({ table, id }) => `${table} ${id}`} />
    </Card>
  )
}

function Next({ row: { attempt, maxAttempts } }: { readonly row: Row }) {
  if (attempt < maxAttempts) return <Badge text="requeue it" tone="wait" icon="again" />
  return <Badge text="fail it" tone="bad" icon="cross" />
}

function Acts({ row: { table, id }, ask }: { readonly row: Row; readonly ask: Ask }) {
  return (
    <div class="actions">
      <ActButton
        needs="operator"
        look="small"
        icon="again"
        label={`Requeue ${table} ${id}`}
        onClick={() => ask({ act: 'requeueStuckRow', table, id })}
      >
        Requeue
      </ActButton>
      <ActButton
        needs="operator"
        look="small"
        icon="cross"
        label={`Fail ${table} ${id}`}
        onClick={() => ask({ act: 'failStuckRow', table, id })}
      >
        Fail
      </ActButton>
    </div>
  )
}
