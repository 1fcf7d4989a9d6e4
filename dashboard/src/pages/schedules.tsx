import { useState } from 'preact/hooks'
import { useApi } from '../api/context.ts'
import type { Schedule } from '../api/shapes.ts'
import { useAnswer } from '../api/use-answer.ts'
import { useFresh } from '../live/context.ts'
import { ActDialog } from '../parts/act-dialog.tsx'
import { Badge } from '../parts/badge.tsx'
import { ActButton } from '../parts/fields.tsx'
import { whole } from '../parts/format.ts'
import { JobId } from '../parts/id.tsx'
import { Card, PageFrame } from '../parts/page.tsx'
import { Answered, EmptyState } from '../parts/states.tsx'
import { Ago, Exact, MaybeAgo } from '../parts/time.tsx'
import { useToast } from '../parts/toast.tsx'
import { useAsked } from '../parts/use-asked.ts'

type Deed = 'pauseSchedule' | 'resumeSchedule' | 'runSchedule'

export function SchedulesPage() {
  const schedules = useAnswer('listSchedules', {})
  const { asked, ask, ends } = useAsked<{ readonly deed: Deed; readonly schedule: Schedule }>(schedules.reload)
  useFresh(schedules.reload, { on: ['overview'], atMostEveryMs: 5_000, everyMs: 10_000 })
  return (
    <PageFrame title="Schedules" lead="Jobs that run by the clock, their next run and their last result.">
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
      {asked !== null && <Deeds {...asked} {...ends} />}
    </PageFrame>
  )
}

function NoSchedules() {
  return (
    <EmptyState icon="schedules" title="No schedules">
      <p>
        A job runs by the clock once you say so: <code>{"millrace schedules add nightly greet '0 2 * * *' '{}'"}</code>
      </p>
    </EmptyState>
  )
}

interface ScheduleCardProps {
  readonly schedule: Schedule
  readonly act: (deed: Deed) => void
}

function ScheduleCard({ schedule, act }: ScheduleCardProps) {
  const { name, type, cron, tz, paused, overdue, nextAtMs } = schedule
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
      {!paused && <NextRuns name={name} />}
      <div class="actions">
        <ActButton
          icon="play"
          needs="operator"
          look="small"
          label={`Run now: ${name}`}
          onClick={() => act('runSchedule')}
        >
          Run now
        </ActButton>
        {paused ? (
          <ActButton needs="operator" look="small" label={`Resume ${name}`} onClick={() => act('resumeSchedule')}>
            Resume
          </ActButton>
        ) : (
          <ActButton
            icon="pause"
            needs="operator"
            look="small"
            label={`Pause ${name}`}
            onClick={() => act('pauseSchedule')}
          >
            Pause
          </ActButton>
        )}
      </div>
    </Card>
  )
}

function ScheduleFacts({ schedule }: { readonly schedule: Schedule }) {
  const { lastTickMs, lastJobId, runs, skips, missedTicks } = schedule
  return (
    <dl class="facts">
      <div>
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

/** The next ten runs, loaded on demand. */
function NextRuns({ name }: { readonly name: string }) {
  const [isOpen, setOpen] = useState(false)
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>Next ten runs</summary>
      {isOpen && <RunList name={name} />}
    </details>
  )
}

function RunList({ name }: { readonly name: string }) {
  const preview = useAnswer('previewSchedule', { params: { name }, query: { count: 10 } })
  return (
    <Answered of={preview} rows={3}>
      {({ nextAtMs }) => (
        <ol class="runs">
          {nextAtMs.map((atMs) => (
            <li key={atMs}>
              <Exact atMs={atMs} />
            </li>
          ))}
        </ol>
      )}
    </Answered>
  )
}

const WORDS: Readonly<Record<Deed, { readonly verb: string; readonly text: string; readonly done: string }>> = {
  pauseSchedule: { verb: 'Pause', text: 'It enqueues nothing until you resume it.', done: 'Paused' },
  resumeSchedule: { verb: 'Resume', text: 'It continues with its next tick.', done: 'Resumed' },
  runSchedule: { verb: 'Run now', text: 'Enqueues one run now.', done: 'Enqueued a run' },
}

interface DeedsProps {
  readonly deed: Deed
  readonly schedule: Schedule
  readonly onClose: () => void
  readonly onDone: () => void
}

function Deeds({ deed, schedule, onClose, onDone }: DeedsProps) {
  const api = useApi()
  const toast = useToast()
  const { verb, text, done } = WORDS[deed]
  return (
    <ActDialog<unknown>
      title={`${verb}: ${schedule.name}?`}
      verb={verb}
      act={(reason) =>
        api.call(deed, { params: { name: schedule.name }, body: { ...(reason !== undefined && { reason }) } })
      }
      onDone={() => {
        toast({ text: `${done}: ${schedule.name}` })
        onDone()
      }}
      onClose={onClose}
    >
      <p>{text}</p>
    </ActDialog>
  )
}
