import type { Finding, JobTables } from '../../api/shapes.ts'
import { useAnswer } from '../../api/use-answer.ts'
import { useFresh } from '../../live/context.ts'
import { Icon } from '../../parts/icon.tsx'
import { PageFrame } from '../../parts/page.tsx'
import { Answered } from '../../parts/states.tsx'
import { useAsked } from '../../parts/use-asked.ts'
import { type Asked, RowAct } from './row-act.tsx'
import { Stuck } from './stuck.tsx'
import { Supervision } from './supervision.tsx'
import { Tables } from './table-list.tsx'

export function TablesPage() {
  const tables = useAnswer('showJobTables', {})
  const { asked, ask, ends } = useAsked<Asked>(tables.reload)
  useFresh(tables.reload, { on: ['overview'], atMostEveryMs: 5_000, everyMs: 10_000 })
  return (
    <PageFrame title="Job tables" lead="Your own tables in Postgres: leases, rows that are stuck, and the reaper.">
      <Answered of={tables}>
        {(all) => (
          <>
            <Tables all={all} />
            <Stuck tables={all.tables} ask={ask} />
            <Findings of={all} />
            <Supervision recent={all.recent} reapers={all.reapers} />
          </>
        )}
      </Answered>
      {asked !== null && <RowAct {...asked} {...ends} />}
    </PageFrame>
  )
}

function Findings({ of: { findings } }: { readonly of: JobTables }) {
  return (
    <>
      {findings
        .filter(({ severity }) => severity !== 'ok')
        .map((finding) => (
          <Notice key={finding.subject + finding.detail} finding={finding} />
        ))}
    </>
  )
}

function Notice({ finding: { severity, subject, detail, advice } }: { readonly finding: Finding }) {
  return (
    <div class={`notice tone-${severity === 'error' ? 'bad' : 'warn'}`}>
      <Icon name="warn" />
      <div>
        <strong>{subject}</strong>
        <p>{detail}</p>
        {advice !== null && <p class="quiet">{advice}</p>}
      </div>
    </div>
  )
}
