import { hasFacet, useSession } from '../../api/context.ts'
import type { ShownJob } from '../../api/shapes.ts'
import { useAnswer } from '../../api/use-answer.ts'
import { useFresh } from '../../live/context.ts'
import { StateBadge } from '../../parts/badge.tsx'
import { nowMs } from '../../parts/clock.ts'
import { readProgress, shortId } from '../../parts/format.ts'
import { CopyButton } from '../../parts/id.tsx'
import { JsonView } from '../../parts/json.tsx'
import { Card, PageFrame } from '../../parts/page.tsx'
import { ProgressBar } from '../../parts/progress.tsx'
import { Answered, EmptyState } from '../../parts/states.tsx'
import { stateLabel } from '../../parts/words.ts'
import { routeTo } from '../../router/route.ts'
import { DoneByHand } from '../audit-list.tsx'
import { EditNotice } from '../edited-payload.tsx'
import { JobActions } from './actions.tsx'
import { enqueueCommand } from './enqueue-command.ts'
import { ErrorCard } from './error-card.tsx'
import { Why } from './explanation.tsx'
import { Facts } from './facts.tsx'
import { WholeFlow } from './graph.tsx'
import { Logs } from './logs.tsx'
import { Timeline } from './timeline.tsx'
import { Waterfall } from './waterfall.tsx'

const LOOK_AGAIN_MS = 3_000

export function JobPage({ id }: { readonly id: string }) {
  const shown = useAnswer('showJob', { params: { id } })
  const state = shown.value?.job.state
  const isLive = state === undefined || isUnfinished(state)
  // Other processes may work on it, so an unfinished job is reloaded regularly.
  useFresh(shown.reload, {
    on: ['jobs'],
    only: (event) => concerns(event, id),
    atMostEveryMs: 500,
    everyMs: isLive ? LOOK_AGAIN_MS : 15_000,
  })
  const above = (
    <nav class="crumbs" aria-label="Where you are">
      <a href={routeTo('jobs')}>Jobs</a> <span aria-hidden="true">/</span> {shortId(id)}
    </nav>
  )
  const job = shown.value?.job
  const title = job === undefined ? `Job ${shortId(id)}` : job.type
  return (
    <PageFrame
      title={title}
      above={above}
      lead={<FullId id={id} />}
      actions={job === undefined ? undefined : <JobActions job={job} onDone={() => void shown.reload()} />}
    >
      {shown.value === null && shown.problem?.status === 404 ? (
        <Gone message={shown.problem.message} />
      ) : (
        <Answered of={shown}>{(value) => <Body shown={value} />}</Answered>
      )}
    </PageFrame>
  )
}

function concerns(event: unknown, id: string): boolean {
  const ids: unknown = typeof event === 'object' && event !== null && 'ids' in event ? event.ids : null
  return Array.isArray(ids) && ids.includes(id)
}

function FullId({ id }: { readonly id: string }) {
  return (
    <span class="id">
      <code>{id}</code>
      <CopyButton text={id} what="the id" />
    </span>
  )
}

function Gone({ message }: { readonly message: string }) {
  return (
    <EmptyState icon="search" title="No such job">
      <p>{message}</p>
      <p>Finished jobs are removed after a while, and a purge removes dead letters for good.</p>
      <a class="button" href={routeTo('jobs')}>
        To the jobs
      </a>
    </EmptyState>
  )
}

function Body({ shown }: { readonly shown: ShownJob }) {
  const { job, history, explanation, audit } = shown
  const session = useSession()
  const isLive = isUnfinished(job.state)
  const progress = readProgress(job.progress)
  return (
    <>
      <Card look={`state-card edged tone-${stateLabel(job, nowMs()).tone}`}>
        <StateBadge job={job} />
        <Why explanation={explanation} />
        {job.state === 'in_progress' && progress !== null && (
          <ProgressBar percent={progress.percent ?? 0} text={progress.text} label="Progress of the job" />
        )}
      </Card>
      {job.error !== null && job.state !== 'completed' && <ErrorCard error={job.error} title={errorTitle(job.state)} />}
      {hasFacet(session, 'listingByState') && <WholeFlow id={job.id} isLive={isLive} />}
      <Waterfall job={job} history={history} />
      <div class="two">
        <div>
          <Card title="What happened">
            <Timeline history={history} audit={audit} />
          </Card>
          {hasFacet(session, 'logs') && <Logs id={job.id} isLive={isLive} />}
        </div>
        <div>
          <Card
            title="Payload"
            aside={
              <CopyButton text={enqueueCommand(job)} what="the command that enqueues it" words="Copy as enqueue" />
            }
          >
            <EditNotice audit={audit} />
            <JsonView value={job.payload} what="payload" />
          </Card>
          {job.result !== null && job.result !== undefined && (
            <Card title="Result">
              <JsonView value={job.result} what="result" />
            </Card>
          )}
          <Card title="Facts">
            <Facts job={job} />
          </Card>
        </div>
      </div>
      <DoneByHand entries={audit} />
    </>
  )
}

function isUnfinished(state: string): boolean {
  return state === 'queued' || state === 'in_progress' || state === 'failed'
}

function errorTitle(state: string): string {
  return state === 'dead_letter' ? 'Why it died' : 'Why the last attempt failed'
}
