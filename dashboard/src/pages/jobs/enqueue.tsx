import { useState } from 'preact/hooks'
import { useApi } from '../../api/context.ts'
import { useAct } from '../../api/use-act.ts'
import { Dialog } from '../../parts/dialog.tsx'
import { SuggestedField, TextField } from '../../parts/fields.tsx'
import { JsonField, payloadIssues, readJson } from '../../parts/json-field.tsx'
import { ErrorState } from '../../parts/states.tsx'
import { useToast } from '../../parts/toast.tsx'
import { routeTo } from '../../router/route.ts'
import { goTo } from '../../router/use-route.ts'
import { useOverview } from '../../shell/overview-context.ts'

const STATUS: Readonly<Record<string, string>> = {
  enqueued: 'Enqueued. This page follows it.',
  duplicate: 'A live job with this key is there already; this is it.',
  replaced: 'Enqueued; it takes the place of an older one.',
  stale: 'A newer one has been seen, so nothing was stored.',
}

export function EnqueueDialog({ onClose }: { readonly onClose: () => void }) {
  const api = useApi()
  const toast = useToast()
  const types = Object.keys(useOverview()?.counts ?? {})
  const [type, setType] = useState('')
  const [text, setText] = useState('{}')
  const [delay, setDelay] = useState('')
  const json = readJson(text)
  const act = useAct(() =>
    api.call('enqueueJob', {
      body: {
        type: type.trim(),
        payload: json.ok ? json.value : null,
        ...(delay.trim() !== '' && { delay: delay.trim() }),
      },
    }),
  )
  const issues = payloadIssues(act.problem)
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault()
    const receipt = json.ok ? await act.run() : null
    if (receipt === null) return
    onClose()
    toast({ text: STATUS[receipt.status] ?? receipt.status })
    goTo(routeTo('jobs', receipt.id))
  }
  return (
    <Dialog title="Enqueue a job" onClose={onClose}>
      <form onSubmit={submit}>
        <SuggestedField label="Type" value={type} onInput={setType} suggestions={types} />
        <JsonField label="Payload" value={text} onInput={setText} issues={issues} rows={6} />
        <TextField label="Delay (optional)" value={delay} onInput={setDelay} placeholder="30s, 5m, 1h" />
        {act.problem !== null && issues.length === 0 && <ErrorState problem={act.problem} />}
        <div class="dialog-foot">
          <button type="button" class="button" onClick={onClose}>
            Back
          </button>
          <button type="submit" class="button primary" disabled={act.isBusy || !json.ok}>
            Enqueue
          </button>
        </div>
      </form>
    </Dialog>
  )
}
