import { useState } from 'preact/hooks'
import { hasFacet, useApi, useSession } from '../../api/context.ts'
import type { JobDetail } from '../../api/shapes.ts'
import { ActDialog } from '../../parts/act-dialog.tsx'
import { ActButton, Tick } from '../../parts/fields.tsx'
import { useToast } from '../../parts/toast.tsx'
import { routeTo } from '../../router/route.ts'

interface ActionsProps {
  readonly job: JobDetail
  readonly onDone: () => void
}

/** The actions for a job in its state. */
export function JobActions({ job, onDone }: ActionsProps) {
  const session = useSession()
  const [asked, setAsked] = useState<'cancel' | 'retry' | 'undo' | null>(null)
  const close = (): void => setAsked(null)
  const done = (): void => {
    close()
    onDone()
  }
  const isLive = job.state === 'queued' || job.state === 'in_progress'
  const isDead = job.state === 'dead_letter'
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
          <ActButton icon="again" needs="operator" look="primary" onClick={() => setAsked('retry')}>
            Retry job
          </ActButton>
        </>
      )}
      {job.state === 'discarded' && hasDesk && (
        <ActButton icon="undo" needs="operator" onClick={() => setAsked('undo')}>
          Undo discard
        </ActButton>
      )}
      {asked === 'cancel' && <Cancel job={job} onDone={done} onClose={close} />}
      {asked === 'retry' && <Retry job={job} onDone={done} onClose={close} />}
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

function Retry({ job, onDone, onClose }: AskedProps) {
  const api = useApi()
  const toast = useToast()
  const [force, setForce] = useState(false)
  return (
    <ActDialog
      title="Retry this job?"
      verb="Retry job"
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
