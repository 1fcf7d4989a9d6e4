import { useState } from 'preact/hooks'
import { useApi } from '../../api/context.ts'
import type { Operation, ShownType } from '../../api/shapes.ts'
import { ActDialog } from '../../parts/act-dialog.tsx'
import { TextField } from '../../parts/fields.tsx'
import { whole } from '../../parts/format.ts'

interface EmptyDialogProps {
  readonly type: ShownType
  readonly kind: 'drain' | 'obliterate'
  readonly onStarted: (operation: Operation) => void
  readonly onClose: () => void
}

/** Asks for the name of the type, so that a slip does not empty another. */
export function EmptyDialog({ type, kind, onStarted, onClose }: EmptyDialogProps) {
  const api = useApi()
  const [confirm, setConfirm] = useState('')
  const name = type.type
  const isDrain = kind === 'drain'
  return (
    <ActDialog<{ readonly operation: Operation }>
      title={`${isDrain ? 'Drain' : 'Obliterate'} ${name}?`}
      verb={isDrain ? 'Drain' : 'Obliterate'}
      danger
      reasonRequired
      act={(reason = '') =>
        api.call(isDrain ? 'drainType' : 'obliterateType', { params: { type: name }, body: { reason, confirm } })
      }
      onDone={({ operation }) => onStarted(operation)}
      onClose={onClose}
    >
      <p>{isDrain ? drainText(type) : obliterateText(type)}</p>
      <TextField
        label={`Type “${name}” to confirm`}
        value={confirm}
        onInput={setConfirm}
        required
        issues={confirm === '' || confirm === name ? [] : [{ path: 'confirm', message: 'That is not its name yet.' }]}
      />
    </ActDialog>
  )
}

function drainText({ ready, delayed }: ShownType): string {
  return `It cancels all ${whole(ready + delayed)} queued jobs of the type, ready, delayed and waiting ones. Those that run go on, and new ones can be enqueued. It cannot be undone.`
}

function obliterateText({ definition }: ShownType): string {
  const critical = definition?.critical === true ? ' Its dead letters stay, because the type is critical.' : ''
  return `It cancels every job of the type, also while it runs, and removes all of them with their histories.${critical} The audit keeps its entries. It cannot be undone.`
}
