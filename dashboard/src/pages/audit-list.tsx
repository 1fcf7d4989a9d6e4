import type { AuditEntry } from '../api/shapes.ts'
import { JobId } from '../parts/id.tsx'
import { Card } from '../parts/page.tsx'
import { type Column, Table } from '../parts/table.tsx'
import { Ago } from '../parts/time.tsx'
import { auditWord, isReason } from './audit-words.ts'
import { EditedParts } from './edited-payload.tsx'
import { editOf } from './payload-edit.ts'

const WHEN: Column<AuditEntry> = {
  key: 'when',
  title: 'When',
  narrow: 'corner',
  cell: ({ atMs }) => <Ago atMs={atMs} />,
}
const WHO: Column<AuditEntry> = { key: 'who', title: 'Who', narrow: 'first', cell: ({ who }) => <strong>{who}</strong> }
const DID: Column<AuditEntry> = {
  key: 'did',
  title: 'Did',
  narrow: 'lead',
  cell: (entry) => (
    <div>
      {auditWord(entry.action)}
      {editOf(entry) !== null && ', payload edited'}
      <EditedParts entry={entry} />
    </div>
  ),
}
const WHAT: Column<AuditEntry> = {
  key: 'what',
  title: 'To what',
  narrow: 'plain',
  cell: ({ jobId, type, subject }) => (
    <>
      <span class="name" title={subject ?? type}>
        {subject ?? type}
      </span>{' '}
      {jobId !== '' && <JobId id={jobId} />}
    </>
  ),
}
const WHY: Column<AuditEntry> = {
  key: 'why',
  title: 'Why',
  wide: true,
  narrow: 'plain',
  cell: (entry) => (isReason(entry) ? <span>{entry.reason}</span> : <span class="quiet">no reason given</span>),
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
