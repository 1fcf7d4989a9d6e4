import type { Supervised } from '../../api/shapes.ts'
import { Badge } from '../../parts/badge.tsx'
import { counted } from '../../parts/format.ts'
import { Card } from '../../parts/page.tsx'
import { type Column, Table } from '../../parts/table.tsx'
import { Ago } from '../../parts/time.tsx'
import type { Label } from '../../parts/words.ts'

const LABELS: Readonly<Record<string, Label>> = {
  'reaper:requeued': { text: 'Requeued', tone: 'wait', icon: 'again' },
  'reaper:failed(timeout)': { text: 'Failed (timeout)', tone: 'bad', icon: 'cross' },
  'operator:requeued': { text: 'Requeued by hand', tone: 'wait', icon: 'again' },
  'operator:failed': { text: 'Failed by hand', tone: 'bad', icon: 'cross' },
}

const COLUMNS: readonly Column<Supervised>[] = [
  {
    key: 'what',
    title: 'What',
    narrow: 'plain',
    cell: ({ type }) => <Badge {...(LABELS[type] ?? { text: type, tone: 'quiet', icon: 'dot' })} />,
  },
  {
    key: 'row',
    title: 'Row',
    wide: true,
    narrow: 'lead',
    cell: ({ jobId, table }) => (
      <div class="endpoint">
        <bdi>{jobId}</bdi>
        <div class="quiet">{table}</div>
      </div>
    ),
  },
  { key: 'worker', title: 'Worker', cell: ({ lockedBy }) => <bdi>{lockedBy ?? '–'}</bdi> },
  { key: 'why', title: 'Why', narrow: 'plain', cell: (one) => <Why of={one} /> },
  { key: 'at', title: 'When', narrow: 'corner', cell: ({ atMs }) => <Ago atMs={atMs} /> },
]

interface SupervisionProps {
  readonly recent: readonly Supervised[] | null
  readonly reapers: number
}

export function Supervision({ recent, reapers }: SupervisionProps) {
  const connected =
    reapers > 0 ? (
      <Badge text={`${counted(reapers, 'reaper')} connected`} tone="good" icon="check" />
    ) : (
      <Badge text="No reaper connected" tone="warn" icon="warn" />
    )
  return (
    <Card title="What the reaper did" look="flush" aside={connected}>
      {recent === null || recent.length === 0 ? (
        <p class="quiet nothing">
          {recent === null ? 'Unknown without the index on job_events.' : 'Nothing was reaped yet.'}
        </p>
      ) : (
        <Table
          caption="What the reaper did"
          columns={COLUMNS}
          rows={recent}
          keyOf={({ table, jobId, atMs, type }) => `${table} ${jobId} ${atMs} ${type}`}
        />
      )}
    </Card>
  )
}

function Why({ of: { who, reason } }: { readonly of: Supervised }) {
  if (who === null) return <span class="quiet">{reason === 'lease_expired' ? 'lease expired' : reason}</span>
  return (
    <div class="endpoint">
      {who}
      <div class="quiet">“{reason}”</div>
    </div>
  )
}
