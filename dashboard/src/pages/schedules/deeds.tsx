import { useApi } from '../../api/context.ts'
import type { Schedule } from '../../api/shapes.ts'
import { ActDialog } from '../../parts/act-dialog.tsx'
import { useToast } from '../../parts/toast.tsx'

export type Deed = 'pauseSchedule' | 'resumeSchedule' | 'runSchedule' | 'removeSchedule'

const WORDS: Readonly<Record<Deed, { readonly verb: string; readonly text: string; readonly done: string }>> = {
  pauseSchedule: { verb: 'Pause', text: 'It enqueues nothing until you resume it.', done: 'Paused' },
  resumeSchedule: { verb: 'Resume', text: 'It continues with its next tick.', done: 'Resumed' },
  runSchedule: { verb: 'Run now', text: 'Enqueues one run now.', done: 'Enqueued a run' },
  removeSchedule: { verb: 'Remove', text: 'It runs no more. Jobs that it has enqueued stay.', done: 'Removed' },
}

interface DeedsProps {
  readonly deed: Deed
  readonly schedule: Schedule
  readonly onClose: () => void
  readonly onDone: () => void
}

export function Deeds({ deed, schedule: { name, declared }, onClose, onDone }: DeedsProps) {
  const api = useApi()
  const toast = useToast()
  const { verb, text, done } = WORDS[deed]
  return (
    <ActDialog<unknown>
      title={`${verb}: ${name}?`}
      verb={verb}
      danger={deed === 'removeSchedule'}
      act={(reason) => api.call(deed, { params: { name }, body: { ...(reason !== undefined && { reason }) } })}
      onDone={() => {
        toast({ text: `${done}: ${name}` })
        onDone()
      }}
      onClose={onClose}
    >
      <p>{text}</p>
      {deed === 'removeSchedule' && declared && (
        <p>Code declares it, so it comes back when that code starts again: pause it, or take it out of the code.</p>
      )}
    </ActDialog>
  )
}
