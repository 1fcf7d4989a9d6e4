import { useState } from 'preact/hooks'
import { useApi } from '../../api/context.ts'
import type { JobDetail } from '../../api/shapes.ts'
import { ActDialog } from '../../parts/act-dialog.tsx'
import { ActButton } from '../../parts/fields.tsx'
import { useToast } from '../../parts/toast.tsx'
import { routeTo } from '../../router/route.ts'
import { goTo } from '../../router/use-route.ts'

interface LetterActionsProps {
  readonly job: JobDetail
  readonly onDone: () => void
}

/** Discards a letter, and undoes that. */
export function LetterActions({ job, onDone }: LetterActionsProps) {
  const api = useApi()
  const toast = useToast()
  const [isAsking, setAsking] = useState(false)
  const undo = async (): Promise<void> => {
    const result = await api.call('undoDiscard', { params: { id: job.id }, body: {} })
    toast(result.ok ? { text: 'It is a dead letter again' } : { text: result.problem.message, tone: 'bad' })
    onDone()
  }
  if (job.state === 'discarded') {
    return (
      <ActButton icon="undo" needs="operator" onClick={() => void undo()}>
        Undo discard
      </ActButton>
    )
  }
  return (
    <>
      <a class="button" href={routeTo('jobs', job.id)}>
        See the job
      </a>
      <ActButton icon="bin" needs="operator" onClick={() => setAsking(true)}>
        Discard…
      </ActButton>
      {isAsking && (
        <ActDialog
          title="Discard this dead letter?"
          verb="Discard"
          danger
          reasonRequired
          act={(reason) =>
            api.call('discardDeadLetters', { body: { selection: { ids: [job.id] }, reason: reason ?? '' } })
          }
          onDone={() => {
            setAsking(false)
            toast({ text: 'Discarded', action: { text: 'Undo', run: () => void undo() } })
            goTo(routeTo('dead-letters'))
          }}
          onClose={() => setAsking(false)}
        >
          <p>It leaves the list and does not run. You can undo this while it is kept.</p>
        </ActDialog>
      )}
    </>
  )
}
