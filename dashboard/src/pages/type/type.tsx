import { useState } from 'preact/hooks'
import { hasFacet, useSession } from '../../api/context.ts'
import type { ShownType } from '../../api/shapes.ts'
import { useAnswer } from '../../api/use-answer.ts'
import { useFresh } from '../../live/context.ts'
import { ActButton } from '../../parts/fields.tsx'
import { PageFrame } from '../../parts/page.tsx'
import { Answered } from '../../parts/states.tsx'
import { type Route, routeTo } from '../../router/route.ts'
import { replaceRoute } from '../../router/use-route.ts'
import { Operations, useOperations } from '../dead-letters/operations.tsx'
import { HistoryCharts, rangeIn } from '../history/history-charts.tsx'
import { PauseDialog, PausedLine } from '../queues.tsx'
import { DefinitionCard, FiguresCard } from './cards.tsx'
import { EmptyDialog } from './empty-dialog.tsx'
import { EnqueueForm } from './enqueue-form.tsx'
import { EditLimits, LimitsCard, ResetLimits } from './limits.tsx'
import { CausesCard, SchedulesCard, WorkersCard } from './related.tsx'

type Asked = 'pause' | 'limits' | 'reset' | 'enqueue' | 'drain' | 'obliterate'

export function TypePage({ type, query }: { readonly type: string; readonly query: Route['query'] }) {
  const session = useSession()
  const shown = useAnswer('showType', { params: { type } })
  const [asked, ask] = useState<Asked | null>(null)
  const operations = useOperations(() => void shown.reload(), ['drain', 'obliterate'])
  useFresh(shown.reload, { on: ['overview'], atMostEveryMs: 2_000, everyMs: 5_000 })
  const close = (): void => ask(null)
  const done = (): void => {
    ask(null)
    void shown.reload()
  }
  return (
    <PageFrame
      title={type}
      lead={<Lead type={type} shown={shown.value} />}
      actions={shown.value !== null && <Acts type={shown.value} ask={ask} />}
    >
      <Operations operations={operations} />
      <Answered of={shown}>
        {(found) => (
          <>
            <div class="two">
              <FiguresCard type={found} />
              <div>
                <LimitsCard type={found} edit={() => ask('limits')} reset={() => ask('reset')} />
                {hasFacet(session, 'presence') && <WorkersCard type={type} />}
                {hasFacet(session, 'schedules') && <SchedulesCard type={type} />}
              </div>
            </div>
            <HistoryCharts
              type={type}
              range={rangeIn(query)}
              choose={(range) => replaceRoute(routeTo('queues', type, { range }))}
            />
            {hasFacet(session, 'deadLetters') && found.dead > 0 && <CausesCard type={type} />}
            <DefinitionCard type={found} />
            {!hasFacet(session, 'emptying') && (
              <p class="quiet">
                This engine cannot remove the jobs of a type, so it cannot be drained or obliterated here.
              </p>
            )}
            {asked === 'pause' && <PauseDialog queue={found} onClose={close} onDone={done} />}
            {asked === 'limits' && <EditLimits type={found} onClose={close} onDone={done} />}
            {asked === 'reset' && <ResetLimits type={found} onClose={close} onDone={done} />}
            {asked === 'enqueue' && <EnqueueForm type={found} onClose={close} />}
            {(asked === 'drain' || asked === 'obliterate') && (
              <EmptyDialog
                type={found}
                kind={asked}
                onClose={close}
                onStarted={(operation) => {
                  operations.follow(operation, [])
                  done()
                }}
              />
            )}
          </>
        )}
      </Answered>
    </PageFrame>
  )
}

function Lead({ type, shown }: { readonly type: string; readonly shown: ShownType | null }) {
  const session = useSession()
  if (shown !== null && shown.pause !== null) return <PausedLine pause={shown.pause} />
  return hasFacet(session, 'inspection') ? <a href={routeTo('jobs', null, { type })}>Its jobs</a> : <>A type of job.</>
}

function Acts({ type, ask }: { readonly type: ShownType; readonly ask: (asked: Asked) => void }) {
  const session = useSession()
  return (
    <>
      <ActButton icon="plus" needs="operator" look="primary" onClick={() => ask('enqueue')}>
        Enqueue
      </ActButton>
      {hasFacet(session, 'pausing') && (
        <ActButton icon={type.pause === null ? 'pause' : 'play'} needs="operator" onClick={() => ask('pause')}>
          {type.pause === null ? 'Pause' : 'Resume'}
        </ActButton>
      )}
      {hasFacet(session, 'emptying') && (
        <>
          <ActButton icon="bin" needs="admin" onClick={() => ask('drain')}>
            Drain
          </ActButton>
          <ActButton icon="bin" needs="admin" look="danger" onClick={() => ask('obliterate')}>
            Obliterate
          </ActButton>
        </>
      )}
    </>
  )
}
