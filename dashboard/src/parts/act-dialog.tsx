import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import type { Result } from '../api/client.ts'
import { useAct } from '../api/use-act.ts'
import { Dialog } from './dialog.tsx'
import { ReasonField } from './fields.tsx'
import { ErrorState } from './states.tsx'

interface ActDialogProps<Value> {
  readonly title: string
  /** The verb on the button. */
  readonly verb: string
  readonly danger?: boolean
  readonly reasonRequired?: boolean
  readonly children?: ComponentChildren
  readonly act: (reason: string | undefined) => Promise<Result<Value>>
  readonly onDone: (value: Value) => void
  readonly onClose: () => void
}

/** Asks for a reason, runs the action, and shows the server's error in place. */
export function ActDialog<Value>(props: ActDialogProps<Value>) {
  const [reason, setReason] = useState('')
  const given = reason.trim()
  const act = useAct(() => props.act(given === '' ? undefined : given))
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault()
    const value = await act.run()
    if (value !== null) props.onDone(value)
  }
  return (
    <Dialog title={props.title} onClose={props.onClose}>
      <form onSubmit={submit}>
        {props.children}
        <ReasonField value={reason} onInput={setReason} required={props.reasonRequired ?? false} />
        {act.problem !== null && <ErrorState problem={act.problem} />}
        <div class="dialog-foot">
          <button type="button" class="button" onClick={props.onClose}>
            Back
          </button>
          <button type="submit" class={`button ${props.danger === true ? 'danger' : 'primary'}`} disabled={act.isBusy}>
            {props.verb}
          </button>
        </div>
      </form>
    </Dialog>
  )
}
