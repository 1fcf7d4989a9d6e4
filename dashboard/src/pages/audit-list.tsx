import type { AuditEntry } from '../api/shapes.ts'
import { JobId } from '../parts/id.tsx'
import { Card } from '../parts/page.tsx'
import { type Column, Table } from '../parts/table.tsx'
import { Ago } from '../parts/time.tsx'
import { EditedParts } from './edited-payload.tsx'
import { editOf } from './payload-edit.ts'

const ACTIONS: Readonly<Record<string, string>> = {
  replay: 'replayed',
  discard: 'discarded',
  undo: 'undid the discard of',
  purge: 'purged',
  enqueue: 'enqueued',
  cancel: 'cancelled',
  retry: 'retried',
  pause: 'paused',
  resume: 'resumed',
  'schedule-change': 'changed schedule',
  'schedule-pause': 'paused schedule',
  'schedule-resume': 'resumed schedule',
  'schedule-run': 'ran schedule',
  'webhook-enable': 'enabled webhook',
  'webhook-disable': 'disabled webhook',
  'webhook-test': 'tested webhook',
  'webhook-redeliver': 'redelivered webhook',
  'schedule-remove': 'removed schedule',
  forget: 'forgot',
}

export const AUDIT_WORDS = Object.keys(ACTIONS)

const WHEN: Column<AuditEntry> = { key: 'when', title: 'When', cell: ({ atMs }) => <Ago atMs={atMs} /> }
const WHO: Column<AuditEntry> = { key: 'who', title: 'Who', cell: ({ who }) => <strong>{who}</strong> }
const DID: Column<AuditEntry> = {
  key: 'did',
  title: 'Did',
  cell: (entry) => (
    <div>
      {ACTIONS[entry.action] ?? entry.action}
      {editOf(entry) !== null && ', payload edited'}
      <EditedParts entry={entry} />
    </div>
  ),
}
const WHAT: Column<AuditEntry> = {
  key: 'what',
  title: 'To what',
  cell: ({ jobId, type, subject }) => (
    <>
      <span class="name" title={subject ?? type}>
        {subject ?? type}
      </span>{' '}
      {jobId !== '' && <JobId id={jobId} />}
    </>
  ),
}
/** Without a reason the name of the action is stored. */
function isReason(reason: string, action: string): boolean {
  return reason !== '' && reason !== action && reason !== `${action}d`
}

const WHY: Column<AuditEntry> = {
  key: 'why',
  title: 'Why',
  wide: true,
  cell: ({ reason, action }) =>
    isReason(reason, action) ? <span>{reason}</span> : <span class="quiet">no reason given</span>,
}

interface AuditListProps {
  readonly entries: readonly AuditEntry[]
  readonly showsJob?: boolean
}

export function AuditList({ entries, showsJob = true }: AuditListProps) {
  const columns = showsJob ? [WHEN, WHO, DID, WHAT, WHY] : [WHEN, WHO, DID, WHY]
  return <Table caption="What was done by hand" columns={columns} rows={entries} keyOf={({ seq }) => String(seq)} />
}

/** The manual actions on one job. */
export function DoneByHand({ entries }: Pick<AuditListProps, 'entries'>) {
  if (entries.length === 0) return null
  return (
    <Card title="Done by hand" look="flush">
      <AuditList entries={entries} showsJob={false} />
    </Card>
  )
}
