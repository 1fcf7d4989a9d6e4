import { hasFacet, useSession } from '../../api/context.ts'
import type { ShownLetter } from '../../api/shapes.ts'
import { useAnswer } from '../../api/use-answer.ts'
import { useFresh } from '../../live/context.ts'
import { StateBadge } from '../../parts/badge.tsx'
import { counted, shortId } from '../../parts/format.ts'
import { CopyButton } from '../../parts/id.tsx'
import { Card, PageFrame } from '../../parts/page.tsx'
import { Answered, EmptyState } from '../../parts/states.tsx'
import { MaybeAgo } from '../../parts/time.tsx'
import { routeTo } from '../../router/route.ts'
import { DoneByHand } from '../audit-list.tsx'
import { ErrorCard } from '../job/error-card.tsx'
import { Facts } from '../job/facts.tsx'
import { Logs } from '../job/logs.tsx'
import { Timeline } from '../job/timeline.tsx'
import { Waterfall } from '../job/waterfall.tsx'
import { LetterActions } from './letter-actions.tsx'
import { Repair } from './repair.tsx'

export function DeadLetterPage({ id }: { readonly id: string }) {
  const letter = useAnswer('showDeadLetter', { params: { id } })
  useFresh(letter.reload, { on: [], everyMs: 15_000 })
  const above = (
    <nav class="crumbs" aria-label="Where you are">
      <a href={routeTo('dead-letters')}>Dead letters</a> <span aria-hidden="true">/</span> {shortId(id)}
    </nav>
  )
  const job = letter.value?.job
  return (
    <PageFrame
      title={job?.type ?? `Dead letter ${shortId(id)}`}
      above={above}
      lead={
        <span class="id">
          <code>{id}</code>
          <CopyButton text={id} what="the id" />
        </span>
      }
      actions={job === undefined ? undefined : <LetterActions job={job} onDone={() => void letter.reload()} />}
    >
      {letter.problem !== null && letter.problem.status >= 404 && letter.problem.status <= 409 ? (
        <NoLetter id={id} message={letter.problem.message} />
      ) : (
        <Answered of={letter}>{(value) => <Body letter={value} />}</Answered>
      )}
    </PageFrame>
  )
}

function NoLetter({ id, message }: { readonly id: string; readonly message: string }) {
  return (
    <EmptyState icon="check" title="No longer a dead letter">
      <p>{message}</p>
      <p>It may have been replayed or purged.</p>
      <a class="button" href={routeTo('jobs', id)}>
        See what became of the job
      </a>
    </EmptyState>
  )
}

function Body({ letter }: { readonly letter: ShownLetter }) {
  const { job, error, fingerprint, history, audit } = letter
  const session = useSession()
  return (
    <>
      <Card look={`state-card edged tone-${job.state === 'dead_letter' ? 'bad' : 'quiet'}`}>
        <StateBadge job={job} />
        <div class="why">
          <p class="why-main">
            {job.state === 'discarded' ? 'It was discarded.' : 'It died'}{' '}
            <MaybeAgo atMs={job.completedAtMs ?? job.updatedAtMs} />, after {counted(job.attempt, 'attempt')} of at most{' '}
            {job.attempts}
            {job.replays > 0 && `; it was replayed ${job.replays} × before`}.
          </p>
          <p>
            <a href={routeTo('dead-letters', null, { type: job.type, fingerprint })}>
              Others that died of the same cause
            </a>
          </p>
        </div>
      </Card>
      <ErrorCard error={error} title="Why it died" />
      <Waterfall job={job} history={history} />
      <div class="two">
        <div>
          <Repair letter={letter} />
          <Card title="Facts">
            <Facts job={job} />
          </Card>
        </div>
        <div>
          <Card title="What happened">
            <Timeline history={history} audit={audit} />
          </Card>
          {hasFacet(session, 'logs') && <Logs id={job.id} isLive={false} />}
        </div>
      </div>
      <DoneByHand entries={audit} />
    </>
  )
}
