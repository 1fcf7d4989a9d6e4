import type { Schedule } from '../../api/shapes.ts'
import { useAnswer } from '../../api/use-answer.ts'
import { useFresh } from '../../live/context.ts'
import { Badge } from '../../parts/badge.tsx'
import { ActButton } from '../../parts/fields.tsx'
import { whole } from '../../parts/format.ts'
import type { IconName } from '../../parts/icon.tsx'
import { JobId } from '../../parts/id.tsx'
import { Card, PageFrame } from '../../parts/page.tsx'
import { Answered, EmptyState } from '../../parts/states.tsx'
import { Ago, MaybeAgo } from '../../parts/time.tsx'
import { useAsked } from '../../parts/use-asked.ts'
import { type Deed, Deeds } from './deeds.tsx'
import { EditSchedule, NewSchedule } from './editor.tsx'
import { NextRuns, PastRuns } from './runs.tsx'

/** What a dialog asks about. */
type Asked =
  | { readonly deed: Deed; readonly schedule: Schedule }
  | { readonly deed: 'edit'; readonly schedule: Schedule }
  | { readonly deed: 'add' }

export function SchedulesPage() {
  const schedules = useAnswer('listSchedules', {})
  const { asked, ask, ends } = useAsked<Asked>(schedules.reload)
  useFresh(schedules.reload, { on: ['overview'], atMostEveryMs: 5_000, everyMs: 10_000 })
  return (
    <PageFrame
      title="Schedules"
      lead="Jobs that run by the clock, their next run and their last result."
      actions={
        <ActButton icon="plus" needs="operator" look="primary" onClick={() => ask({ deed: 'add' })}>
          New schedule
        </ActButton>
      }
    >
      <Answered of={schedules}>
        {({ schedules: all }) =>
          all.length === 0 ? (
            <NoSchedules />
          ) : (
            <ul class="cards">
              {all.map((schedule) => (
                <li key={schedule.name}>
                  <ScheduleCard schedule={schedule} act={(deed) => ask({ deed, schedule })} />
                </li>
              ))}
            </ul>
          )
        }
      </Answered>
      {asked !== null && <AskedDialog asked={asked} {...ends} />}
    </PageFrame>
  )
}

interface AskedDialogProps {
  readonly asked: Asked
  readonly onClose: () => void
  readonly onDone: () => void
}

function AskedDialog({ asked, ...ends }: AskedDialogProps) {
  if (asked.deed === 'add') return <NewSchedule {...ends} />
  if (asked.deed === 'edit') return <EditSchedule name={asked.schedule.name} {...ends} />
  return <Deeds deed={asked.deed} schedule={asked.schedule} {...ends} />
}

function NoSchedules() {
  return (
    <EmptyState icon="schedules" title="No schedules">
      <p>
        A job runs by the clock once you say so: add a schedule here, declare it with the job, or{' '}
        <code>{"millrace schedules add nightly greet '0 2 * * *' '{}'"}</code>
      </p>
    </EmptyState>
  )
}

interface ScheduleCardProps {
  readonly schedule: Schedule
  readonly act: (deed: Deed | 'edit') => void
}

function ScheduleCard({ schedule, act }: ScheduleCardProps) {
  const { name, type, cron, tz, paused, overdue, nextAtMs, declared } = schedule
  return (
    <Card>
      <header class="worker-head">
        <h2>{name}</h2>
        {paused && <Badge text="Paused" tone="wait" icon="pause" />}
        {overdue && <Badge text="Overdue" tone="warn" icon="warn" />}
      </header>
      <p class="next-run">
        {paused ? (
          'No runs until it is resumed.'
        ) : nextAtMs === null ? (
          'It has no further runs.'
        ) : (
          <>
            Next <Ago atMs={nextAtMs} />
          </>
        )}
      </p>
      {overdue && !paused && (
        <p class="text-warn">Its run is due and was not enqueued. Is a keeper or worker running?</p>
      )}
      <ScheduleFacts schedule={schedule} />
      <p class="quiet">
        <code>{cron}</code> {tz} · {type}
      </p>
      {declared && <p class="quiet">Declared in code, so it is edited there. Pausing it here holds.</p>}
      <div class="folds">
        {!paused && <NextRuns name={name} tz={tz} />}
        <PastRuns name={name} />
      </div>
      <ScheduleActions schedule={schedule} act={act} />
    </Card>
  )
}

function ScheduleActions({ schedule: { name, paused, declared }, act }: ScheduleCardProps) {
  const button = (deed: Deed | 'edit', verb: string, label: string, icon?: IconName) => (
    <ActButton needs="operator" look="small" label={label} onClick={() => act(deed)} {...(icon && { icon })}>
      {verb}
    </ActButton>
  )
  return (
    <div class="actions">
      {button('runSchedule', 'Run now', `Run now: ${name}`, 'play')}
      {paused
        ? button('resumeSchedule', 'Resume', `Resume ${name}`)
        : button('pauseSchedule', 'Pause', `Pause ${name}`, 'pause')}
      {!declared && button('edit', 'Edit', `Edit ${name}`)}
      {button('removeSchedule', 'Remove', `Remove ${name}`, 'bin')}
    </div>
  )
}

function ScheduleFacts({ schedule }: { readonly schedule: Schedule }) {
  const { lastTickMs, lastJobId, runs, skips, missedTicks } = schedule
  return (
    <dl class="facts compact">
      <div class="twice">
        <dt>Last run</dt>
        <dd>
          <MaybeAgo atMs={lastTickMs} otherwise="none yet" /> {lastJobId !== null && <JobId id={lastJobId} />}
        </dd>
      </div>
      <div>
        <dt>Runs</dt>
        <dd>
          {whole(runs)}
          {skips > 0 && `, ${whole(skips)} skipped because the one before was not over`}
          {missedTicks > 0 && `, ${whole(missedTicks)} missed because no keeper ran`}
        </dd>
      </div>
    </dl>
  )
}
