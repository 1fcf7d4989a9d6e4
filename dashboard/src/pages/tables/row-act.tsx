import { useApi } from '../../api/context.ts'
import { ActDialog } from '../../parts/act-dialog.tsx'
import { useToast } from '../../parts/toast.tsx'

type Act = 'requeueStuckRow' | 'failStuckRow'

export interface Asked {
  readonly act: Act
  readonly table: string
  readonly id: string
}

export type Ask = (asked: Asked) => void

const WORDS: Readonly<Record<Act, { readonly verb: string; readonly text: string; readonly done: string }>> = {
  requeueStuckRow: {
    verb: 'Requeue',
    text: 'Queues the row again, due now. If its attempts are used up, it is started once more.',
    done: 'Requeued',
  },
  failStuckRow: {
    verb: 'Fail',
    text: 'Fails the row with your reason, although attempts may be left. It does not run again by itself.',
    done: 'Failed',
  },
}

interface RowActProps extends Asked {
  readonly onClose: () => void
  readonly onDone: () => void
}

export function RowAct({ act, table, id, onClose, onDone }: RowActProps) {
  const api = useApi()
  const toast = useToast()
  const { verb, text, done } = WORDS[act]
  return (
    <ActDialog<unknown>
      title={`${verb}: ${table} ${id}?`}
      verb={verb}
      danger={act === 'failStuckRow'}
      reasonRequired
      act={(reason) => api.call(act, { params: { table, id }, body: { reason: reason ?? '' } })}
      onDone={() => {
        toast({ text: `${done}: ${table} ${id}` })
        onDone()
      }}
      onClose={onClose}
    >
      <p>{text}</p>
    </ActDialog>
  )
}
