import { hasFacet, useSession } from '../../api/context.ts'
import type { Overview } from '../../api/shapes.ts'
import { Badge } from '../../parts/badge.tsx'
import { whole } from '../../parts/format.ts'
import { Card } from '../../parts/page.tsx'
import { type Column, Table } from '../../parts/table.tsx'
import { routeTo } from '../../router/route.ts'
import type { Counts } from '../../shell/overview-context.ts'

interface TypeRow extends Counts {
  readonly type: string
  readonly isPaused: boolean
}

/** A number that is dimmed when it is 0. */
export function Count({ of, tone = '' }: { readonly of: number; readonly tone?: string }) {
  return <span class={`figures ${of === 0 ? 'quiet' : tone}`}>{whole(of)}</span>
}

const COLUMNS: readonly Column<TypeRow>[] = [
  { key: 'ready', title: 'Ready', align: 'end', cell: ({ ready }) => <Count of={ready} /> },
  { key: 'delayed', title: 'Delayed', align: 'end', cell: ({ delayed }) => <Count of={delayed} /> },
  { key: 'running', title: 'Running', align: 'end', cell: ({ inProgress }) => <Count of={inProgress} /> },
  { key: 'completed', title: 'Completed', align: 'end', cell: ({ completed }) => <Count of={completed} /> },
]

export function TypesTable({ overview }: { readonly overview: Overview }) {
  const session = useSession()
  const rows = Object.entries(overview.counts)
    .map(([type, counts]) => ({ type, ...counts, isPaused: overview.paused.includes(type) }))
    .toSorted((one, other) => one.type.localeCompare(other.type))
  if (rows.length === 0) return null
  const name: Column<TypeRow> = {
    key: 'type',
    title: 'Type',
    wide: true,
    narrow: 'lead',
    cell: ({ type, isPaused }) => (
      <>
        <a href={routeTo('queues', type)}>{type}</a> {isPaused && <Badge text="Paused" tone="wait" icon="pause" />}
      </>
    ),
  }
  const dead: Column<TypeRow> = {
    key: 'dead',
    title: 'Dead',
    align: 'end',
    cell: ({ type, dead: count }) =>
      count > 0 && hasFacet(session, 'deadLetters') ? (
        <a class="figures text-bad" href={routeTo('dead-letters', null, { type })}>
          {whole(count)}
        </a>
      ) : (
        <Count of={count} tone="text-bad" />
      ),
  }
  return (
    <Card title="Types" look="flush">
      <Table caption="Types and their jobs" columns={[name, ...COLUMNS, dead]} rows={rows} keyOf={({ type }) => type} />
    </Card>
  )
}
