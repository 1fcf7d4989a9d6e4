import type { JobSummary } from '../../api/shapes.ts'
import { StateBadge } from '../../parts/badge.tsx'
import { duration, readProgress } from '../../parts/format.ts'
import { JobId } from '../../parts/id.tsx'
import { ProgressBar } from '../../parts/progress.tsx'
import { type Column, Table } from '../../parts/table.tsx'
import { Tags } from '../../parts/tags.tsx'
import { MaybeAgo, Since } from '../../parts/time.tsx'
import { startsOf } from '../../parts/words.ts'
import { routeTo } from '../../router/route.ts'

const COLUMNS: readonly Column<JobSummary>[] = [
  { key: 'state', title: 'State', narrow: 'plain', cell: (job) => <StateBadge job={job} /> },
  { key: 'id', title: 'Job', narrow: 'plain', cell: ({ id }) => <JobId id={id} /> },
  {
    key: 'type',
    title: 'Type',
    narrow: 'lead',
    cell: ({ type }) => (
      <a class="plain name" title={type} href={routeTo('jobs', null, { type })}>
        {type}
      </a>
    ),
  },
  {
    key: 'what',
    title: 'Status',
    wide: true,
    narrow: 'line',
    cell: (job) => (
      <span class="what">
        <What job={job} />
        <Tags tags={job.tags} />
      </span>
    ),
  },
  {
    key: 'attempt',
    title: 'Attempt',
    align: 'end',
    narrow: 'plain',
    cell: (job) => (
      <span class="figures" title={`${startsOf(job)} of at most ${job.attempts} starts`}>
        {startsOf(job)}/{job.attempts}
      </span>
    ),
  },
  { key: 'took', title: 'Took', align: 'end', narrow: 'plain', cell: (job) => <Took job={job} /> },
  {
    key: 'changed',
    title: 'Changed',
    align: 'end',
    narrow: 'corner',
    cell: ({ updatedAtMs }) => <MaybeAgo atMs={updatedAtMs} />,
  },
]

interface JobsTableProps {
  readonly rows: readonly JobSummary[]
  readonly isDimmed: boolean
}

export function JobsTable({ rows, isDimmed }: JobsTableProps) {
  return (
    <div class={`card flush ${isDimmed ? 'dimmed' : ''}`} aria-busy={isDimmed}>
      <Table caption="Jobs, newest first" columns={COLUMNS} rows={rows} keyOf={({ id }) => id} />
    </div>
  )
}

function Took({ job }: { readonly job: JobSummary }) {
  if (job.durationMs !== null) return <span class="figures">{duration(job.durationMs)}</span>
  if (job.state === 'in_progress' && job.startedAtMs !== null) return <Since atMs={job.startedAtMs} />
  return <span class="quiet">–</span>
}

/** The most important fact of a job in a list. */
function What({ job }: { readonly job: JobSummary }) {
  const progress = readProgress(job.progress)
  if (job.state === 'in_progress' && progress !== null) {
    return progress.percent === null ? (
      <span class="cut">{progress.text}</span>
    ) : (
      <ProgressBar percent={progress.percent} text={progress.text} label="Progress" />
    )
  }
  if (job.error !== null && job.state !== 'completed') return <span class="cut text-bad">{job.error.message}</span>
  if (job.state === 'queued' && job.attempt > 0) return <span class="quiet">waits for its next attempt</span>
  return <Marks job={job} />
}

function Marks({ job }: { readonly job: JobSummary }) {
  const marks = [
    job.key === null ? null : `key ${job.key}`,
    job.latestKey === null ? null : `latest ${job.latestKey}`,
    job.tenant === null ? null : `tenant ${job.tenant.orgId}`,
    job.replays === 0 ? null : `replayed ${job.replays} ×`,
  ]
  const text = marks.filter((mark) => mark !== null).join(' · ')
  return text === '' ? null : <span class="quiet cut">{text}</span>
}
