import { useState } from 'preact/hooks'
import { hasFacet, useApi, useSession } from '../../api/context.ts'
import type { JobDetail } from '../../api/shapes.ts'
import { ActDialog } from '../../parts/act-dialog.tsx'
import { ActButton, Tick } from '../../parts/fields.tsx'
import { useToast } from '../../parts/toast.tsx'
import { routeTo } from '../../router/route.ts'
import { goTo } from '../../router/use-route.ts'

interface ActionsProps {
  readonly job: JobDetail
  readonly onDone: () => void
}

/** The actions for a job in its state. */
export function JobActions({ job, onDone }: ActionsProps) {
  const session = useSession()
  const [asked, setAsked] = useState<'cancel' | 'replay' | 'again' | 'undo' | null>(null)
  const close = (): void => setAsked(null)
  const done = (): void => {
    close()
    onDone()
  }
  const isLive = job.state === 'queued' || job.state === 'in_progress'
  const isDead = job.state === 'dead_letter'
  const isOver = job.state === 'completed' || job.state === 'cancelled' || job.state === 'superseded'
  const hasDesk = hasFacet(session, 'deadLetters')
  return (
    <>
      {isLive && hasFacet(session, 'cancellation') && (
        <ActButton icon="cross" needs="operator" onClick={() => setAsked('cancel')}>
          Cancel job
        </ActButton>
      )}
      {isDead && hasDesk && (
        <>
          <a class="button" href={routeTo('dead-letters', job.id)}>
            Edit payload
          </a>
          <ActButton icon="again" needs="operator" look="primary" onClick={() => setAsked('replay')}>
            Replay job
          </ActButton>
        </>
      )}
      {isOver && (
        <ActButton icon="again" needs="operator" onClick={() => setAsked('again')}>
          Run again
        </ActButton>
      )}
      {job.state === 'discarded' && hasDesk && (
        <ActButton icon="undo" needs="operator" onClick={() => setAsked('undo')}>
          Undo discard
        </ActButton>
      )}
      {asked === 'cancel' && <Cancel job={job} onDone={done} onClose={close} />}
      {asked === 'again' && <RunAgain job={job} onClose={close} />}
      {asked === 'replay' && <Replay job={job} onDone={done} onClose={close} />}
      {asked === 'undo' && <Undo job={job} onDone={done} onClose={close} />}
    </>
  )
}

interface AskedProps extends ActionsProps {
  readonly onClose: () => void
}

function Cancel({ job, onDone, onClose }: AskedProps) {
  const api = useApi()
  const toast = useToast()
  return (
    <ActDialog
      title="Cancel this job?"
      verb="Cancel job"
      danger
      act={(reason) =>
        api.call('cancelJob', { params: { id: job.id }, body: { ...(reason !== undefined && { reason }) } })
      }
      onDone={() => {
        toast({ text: 'Cancelled' })
        onDone()
      }}
      onClose={onClose}
    >
      <p>
        {job.state === 'in_progress' ? 'Its worker is told to stop, and its result is ignored.' : 'It will not run.'} A
        cancelled job cannot be brought back.
      </p>
    </ActDialog>
  )
}

function Replay({ job, onDone, onClose }: AskedProps) {
  const api = useApi()
  const toast = useToast()
  const [force, setForce] = useState(false)
  return (
    <ActDialog
      title="Replay this job?"
      verb="Replay job"
      act={(reason) =>
        api.call('retryJob', { params: { id: job.id }, body: { force, ...(reason !== undefined && { reason }) } })
      }
      onDone={() => {
        toast({ text: 'Back in the queue. This page follows it.' })
        onDone()
      }}
      onClose={onClose}
    >
      <p>
        It goes back into the queue as it is, with all its attempts. To change its payload first, use “Edit payload”.
      </p>
      <Tick label="Even so: also if it was already replayed too often" checked={force} onChange={setForce} />
    </ActDialog>
  )
}

function RunAgain({ job, onClose }: Pick<AskedProps, 'job' | 'onClose'>) {
  const api = useApi()
  const toast = useToast()
  return (
    <ActDialog
      title="Run this job again?"
      verb="Run again"
      act={(reason) =>
        api.call('runJobAgain', { params: { id: job.id }, body: { ...(reason !== undefined && { reason }) } })
      }
      onDone={({ id }) => {
        onClose()
        toast({ text: 'Enqueued as a new job' })
        goTo(routeTo('jobs', id))
      }}
      onClose={onClose}
    >
      <p>
        A new job with the same payload, priority, attempts, tenant and tags is enqueued, without a key. This one stays
        as it is.
      </p>
    </ActDialog>
  )
}

function Undo({ job, onDone, onClose }: AskedProps) {
  const api = useApi()
  const toast = useToast()
  return (
    <ActDialog
      title="Undo the discard?"
      verb="Undo discard"
      act={(reason) =>
        api.call('undoDiscard', { params: { id: job.id }, body: { ...(reason !== undefined && { reason }) } })
      }
      onDone={() => {
        toast({ text: 'It is a dead letter again' })
        onDone()
      }}
      onClose={onClose}
    >
      <p>It becomes the dead letter that it was, and can be replayed.</p>
    </ActDialog>
  )
}
