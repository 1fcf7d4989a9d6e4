import { useState } from 'preact/hooks'
import type { ScheduleRuns } from '../../api/shapes.ts'
import { useAnswer } from '../../api/use-answer.ts'
import { useFresh } from '../../live/context.ts'
import { Badge } from '../../parts/badge.tsx'
import { useNow } from '../../parts/clock.ts'
import { exactIn, READER_ZONE, shortId, whole } from '../../parts/format.ts'
import { JobId } from '../../parts/id.tsx'
import { Answered } from '../../parts/states.tsx'
import { type Column, Table } from '../../parts/table.tsx'
import { Ago } from '../../parts/time.tsx'
import { type Label, stateLabel } from '../../parts/words.ts'

type Past = ScheduleRuns['past'][number]

/** Loaded on demand. */
export function NextRuns({ name, tz }: { readonly name: string; readonly tz: string }) {
  const [isOpen, setOpen] = useState(false)
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>Next ten runs</summary>
      {isOpen && <RunList name={name} tz={tz} />}
    </details>
  )
}

function RunList({ name, tz }: { readonly name: string; readonly tz: string }) {
  const preview = useAnswer('previewSchedule', { params: { name }, query: { count: 10 } })
  return (
    <Answered of={preview} rows={3}>
      {({ nextAtMs }) => <RunTimes nextAtMs={nextAtMs} tz={tz} />}
    </Answered>
  )
}

/** In the zone of the schedule, and in that of the reader if it is another. */
export function RunTimes({ nextAtMs, tz }: { readonly nextAtMs: readonly number[]; readonly tz: string }) {
  if (nextAtMs.length === 0) return <p class="quiet">It never runs again.</p>
  const inZone = (zone: string, title: string): Column<number> => ({
    key: title,
    title,
    cell: (atMs) => <time dateTime={new Date(atMs).toISOString()}>{exactIn(zone, atMs)}</time>,
  })
  const own = inZone(tz, `In ${tz}`)
  const columns = tz === READER_ZONE ? [own] : [own, inZone(READER_ZONE, `Here, in ${READER_ZONE}`)]
  return <Table small caption="The next runs" columns={columns} rows={nextAtMs} keyOf={String} />
}

/** What became of the last ticks, loaded on demand and kept up to date. */
export function PastRuns({ name }: { readonly name: string }) {
  const [isOpen, setOpen] = useState(false)
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>Last runs</summary>
      {isOpen && <PastList name={name} />}
    </details>
  )
}

function PastList({ name }: { readonly name: string }) {
  const runs = useAnswer('listScheduleRuns', { query: { name } })
  useFresh(runs.reload, { on: ['overview', 'jobs'], atMostEveryMs: 2_000, everyMs: 5_000 })
  return (
    <Answered of={runs} rows={3}>
      {({ past, outcomesKnown }) =>
        past.length === 0 ? (
          <p class="quiet">None is recorded yet.</p>
        ) : (
          <>
            {!outcomesKnown && <p class="quiet">This engine cannot look up what became of a run.</p>}
            <PastTable past={past} outcomesKnown={outcomesKnown} />
          </>
        )
      }
    </Answered>
  )
}

function PastTable({ past, outcomesKnown }: ScheduleRuns) {
  const now = useNow()
  const columns: readonly Column<Past>[] = [
    { key: 'when', title: 'When', narrow: 'corner', cell: ({ atMs }) => <Ago atMs={atMs} /> },
    {
      key: 'what',
      title: 'Outcome',
      narrow: 'first',
      cell: (tick) => <Badge {...outcomeOf(tick, outcomesKnown, now)} />,
    },
    { key: 'job', title: 'Job', narrow: 'lead', cell: (tick) => <PastJob tick={tick} /> },
  ]
  const keyOf = ({ what, atMs, jobId }: Past): string => `${what} ${jobId ?? atMs}`
  return <Table small caption="The last runs, newest first" columns={columns} rows={past.toReversed()} keyOf={keyOf} />
}

function PastJob({ tick: { what, jobId, state } }: { readonly tick: Past }) {
  if (jobId === null) {
    return <span class="quiet">none: {what === 'missed' ? 'no keeper ran' : 'the run before was not over'}</span>
  }
  return (
    <>
      {state === null ? <span title={jobId}>{shortId(jobId)}</span> : <JobId id={jobId} />}
      {what === 'run-now' && <span class="quiet"> by hand</span>}
    </>
  )
}

/** Never an outcome that is not known. */
function outcomeOf({ what, count, state }: Past, outcomesKnown: boolean, nowMs: number): Label {
  const times = count === 1 ? '' : ` ${whole(count)} times`
  if (what === 'missed') return { text: `Missed${times}`, tone: 'warn', icon: 'warn' }
  if (what === 'skipped') return { text: `Skipped${times}`, tone: 'wait', icon: 'clock' }
  if (state !== null) return stateLabel({ state }, nowMs)
  return { text: outcomesKnown ? 'No longer stored' : 'Not known', tone: 'quiet', icon: 'dot' }
}
