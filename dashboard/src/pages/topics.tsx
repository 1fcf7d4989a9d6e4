import type { Topic } from '../api/shapes.ts'
import { useAnswer } from '../api/use-answer.ts'
import { useFresh } from '../live/context.ts'
import { Badge } from '../parts/badge.tsx'
import { whole } from '../parts/format.ts'
import { PageFrame } from '../parts/page.tsx'
import { Answered, EmptyState } from '../parts/states.tsx'
import { type Column, Table } from '../parts/table.tsx'
import type { Label } from '../parts/words.ts'

const LEVELS: Readonly<Record<Topic['level'], Label>> = {
  ok: { text: 'Keeps up', tone: 'good', icon: 'check' },
  warning: { text: 'Behind', tone: 'warn', icon: 'warn' },
  critical: { text: 'Far behind', tone: 'bad', icon: 'cross' },
}

const COLUMNS: readonly Column<Topic>[] = [
  { key: 'level', title: 'State', narrow: 'corner', cell: ({ level }) => <Badge {...LEVELS[level]} /> },
  { key: 'topic', title: 'Topic', narrow: 'lead', cell: ({ topic }) => <strong>{topic}</strong> },
  { key: 'group', title: 'Consumer group', narrow: 'plain', cell: ({ group }) => group },
  { key: 'lag', title: 'Lag', align: 'end', cell: ({ lag }) => <span class="figures">{whole(lag)}</span> },
  {
    key: 'bar',
    title: 'Against its thresholds',
    wide: true,
    narrow: 'line',
    cell: (topic) => <LagBar topic={topic} />,
  },
]

export function TopicsPage() {
  const topics = useAnswer('listTopics', {})
  useFresh(topics.reload, { on: ['overview'], atMostEveryMs: 5_000, everyMs: 10_000 })
  return (
    <PageFrame title="Topics" lead="The lag of each consumer group, and the limits for a warning.">
      <Answered of={topics}>
        {({ topics: all }) =>
          all.length === 0 ? (
            <EmptyState icon="topics" title="No consumer group reads yet">
              <p>A topic appears here as soon as a worker takes its first record.</p>
            </EmptyState>
          ) : (
            <div class="card flush">
              <Table
                caption="Topics and their lag"
                columns={COLUMNS}
                rows={all}
                keyOf={({ group, topic }) => `${group} ${topic}`}
              />
            </div>
          )
        }
      </Answered>
    </PageFrame>
  )
}

function LagBar({ topic: { lag, warning, critical } }: { readonly topic: Topic }) {
  if (warning === null && critical === null) return <span class="quiet">no thresholds set</span>
  const top = (critical ?? warning ?? 1) * 1.25
  const text = [
    warning === null ? null : `warning at ${whole(warning)}`,
    critical === null ? null : `critical at ${whole(critical)}`,
  ]
    .filter((part) => part !== null)
    .join(', ')
  return (
    <div class="lag">
      <meter
        min={0}
        max={top}
        low={warning ?? top}
        high={critical ?? top}
        optimum={0}
        value={Math.min(lag, top)}
        aria-label={`Lag ${whole(lag)}, ${text}`}
      />
      <span class="quiet">{text}</span>
    </div>
  )
}
