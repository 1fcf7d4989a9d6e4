import { hasFacet, useApi, useSession } from '../api/context.ts'
import type { Queue } from '../api/shapes.ts'
import { useAnswer } from '../api/use-answer.ts'
import { useFresh } from '../live/context.ts'
import { ActDialog } from '../parts/act-dialog.tsx'
import { Badge } from '../parts/badge.tsx'
import { ActButton } from '../parts/fields.tsx'
import { PageFrame } from '../parts/page.tsx'
import { Answered } from '../parts/states.tsx'
import { type Column, Table } from '../parts/table.tsx'
import { Ago } from '../parts/time.tsx'
import { useToast } from '../parts/toast.tsx'
import { useAsked } from '../parts/use-asked.ts'
import { routeTo } from '../router/route.ts'
import { FirstJob } from './overview/first-job.tsx'
import { Count } from './overview/types-table.tsx'

const COLUMNS: readonly Column<Queue>[] = [
  { key: 'ready', title: 'Ready', align: 'end', cell: ({ ready }) => <Count of={ready} /> },
  { key: 'delayed', title: 'Delayed', align: 'end', cell: ({ delayed }) => <Count of={delayed} /> },
  { key: 'running', title: 'Running', align: 'end', cell: (queue) => <Running queue={queue} /> },
  { key: 'completed', title: 'Completed', align: 'end', cell: ({ completed }) => <Count of={completed} /> },
  { key: 'dead', title: 'Dead', align: 'end', cell: ({ dead }) => <Count of={dead} tone="text-bad" /> },
  { key: 'workers', title: 'Workers', align: 'end', cell: (queue) => <Workers queue={queue} /> },
]

/** The slots over all workers stand beside it, where the type has any. */
function Running({ queue: { inProgress, slots } }: { readonly queue: Queue }) {
  if (slots === null) return <Count of={inProgress} />
  return (
    <>
      <Count of={inProgress} />{' '}
      <span class="quiet">{slots.by === null ? `of ${slots.max}` : `${slots.max} each tenant`}</span>
    </>
  )
}

function Workers({ queue: { workers, ready } }: { readonly queue: Queue }) {
  if (workers === null) return <span class="quiet">unknown</span>
  if (workers > 0 || ready === 0) return <Count of={workers} />
  return <Badge text="None" tone="warn" icon="warn" />
}

export function QueuesPage() {
  const session = useSession()
  const queues = useAnswer('listQueues', {})
  const { asked, ask, ends } = useAsked<Queue>(queues.reload)
  useFresh(queues.reload, { on: ['overview'], atMostEveryMs: 2_000, everyMs: 10_000 })
  const canPause = hasFacet(session, 'pausing')
  const columns = [NAME_COLUMN, ...COLUMNS, ...(canPause ? [actColumn(ask)] : [])]
  return (
    <PageFrame
      title="Queues"
      lead={
        canPause
          ? 'Every type has its queue. A paused one starts no more jobs; those that run go on.'
          : 'Every type has its queue. This engine cannot pause single ones.'
      }
    >
      <Answered of={queues}>
        {({ queues: all }) =>
          all.length === 0 ? (
            <FirstJob />
          ) : (
            <div class="card flush">
              <Table caption="Queues" columns={columns} rows={all} keyOf={({ type }) => type} />
            </div>
          )
        }
      </Answered>
      {asked !== null && <PauseDialog queue={asked} {...ends} />}
    </PageFrame>
  )
}

const NAME_COLUMN: Column<Queue> = {
  key: 'type',
  title: 'Type',
  wide: true,
  narrow: 'lead',
  cell: ({ type, pause }) => (
    <div>
      <a href={routeTo('queues', type)}>{type}</a>
      {pause !== null && <PausedLine pause={pause} />}
    </div>
  ),
}

export function PausedLine({ pause }: { readonly pause: NonNullable<Queue['pause']> }) {
  return (
    <p class="paused-line">
      <Badge text="Paused" tone="wait" icon="pause" />{' '}
      <span class="quiet">
        <Ago atMs={pause.sinceMs} /> by {pause.who}
        {pause.reason !== '' && `: ${pause.reason}`}
      </span>
    </p>
  )
}

function actColumn(ask: (queue: Queue) => void): Column<Queue> {
  return {
    key: 'act',
    title: 'Pause or resume',
    align: 'end',
    narrow: 'corner',
    cell: (queue) => (
      <ActButton
        icon={queue.pause === null ? 'pause' : 'play'}
        needs="operator"
        look="small"
        label={`${queue.pause === null ? 'Pause' : 'Resume'} ${queue.type}`}
        onClick={() => ask(queue)}
      >
        {queue.pause === null ? 'Pause' : 'Resume'}
      </ActButton>
    ),
  }
}

interface PauseDialogProps {
  readonly queue: Pick<Queue, 'type' | 'pause'>
  readonly onClose: () => void
  readonly onDone: () => void
}

export function PauseDialog({ queue, onClose, onDone }: PauseDialogProps) {
  const api = useApi()
  const toast = useToast()
  const isPaused = queue.pause !== null
  return (
    <ActDialog<unknown>
      title={`${isPaused ? 'Resume' : 'Pause'} ${queue.type}?`}
      verb={isPaused ? 'Resume' : 'Pause'}
      act={(reason) =>
        api.call(isPaused ? 'resumeQueue' : 'pauseQueue', {
          params: { type: queue.type },
          body: { ...(reason !== undefined && { reason }) },
        })
      }
      onDone={() => {
        toast({ text: `${queue.type} is ${isPaused ? 'resumed' : 'paused'}` })
        onDone()
      }}
      onClose={onClose}
    >
      <p>
        {isPaused
          ? 'Workers start its jobs again, in their order.'
          : 'No worker starts another job of this type, in any process. Those that run go on, and new ones wait.'}
      </p>
    </ActDialog>
  )
}
