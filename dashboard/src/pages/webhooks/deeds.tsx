import { useApi } from '../../api/context.ts'
import { ActDialog } from '../../parts/act-dialog.tsx'
import { duration } from '../../parts/format.ts'
import { useToast } from '../../parts/toast.tsx'

type Deed = 'enableWebhook' | 'disableWebhook' | 'testWebhook' | 'redeliverWebhook'

export interface Asked {
  readonly deed: Deed
  /** Of an endpoint, or of a delivery. */
  readonly id: string
  readonly name: string
}

export type Ask = (asked: Asked) => void

const WORDS: Readonly<Record<Deed, { readonly verb: string; readonly text: string; readonly done: string }>> = {
  enableWebhook: {
    verb: 'Enable',
    text: 'It gets events again. Its failures so far no longer count.',
    done: 'Enabled',
  },
  disableWebhook: {
    verb: 'Disable',
    text: 'It gets no events. Deliveries that were tried become dead letters.',
    done: 'Disabled',
  },
  testWebhook: { verb: 'Send test', text: 'Sends a signed webhook.test event now.', done: 'Test sent' },
  redeliverWebhook: { verb: 'Redeliver', text: 'Sends it again with the same delivery id.', done: 'Enqueued again' },
}

interface DeedsProps extends Asked {
  readonly onClose: () => void
  readonly onDone: () => void
}

export function Deeds({ deed, id, name, onClose, onDone }: DeedsProps) {
  const api = useApi()
  const toast = useToast()
  const { verb, text, done } = WORDS[deed]
  return (
    <ActDialog<unknown>
      title={`${verb}: ${name}?`}
      verb={verb}
      act={(reason) => api.call(deed, { params: { id }, body: { ...(reason !== undefined && { reason }) } })}
      onDone={(answer) => {
        toast({ text: `${deed === 'testWebhook' ? testText(answer) : done}: ${name}` })
        onDone()
      }}
      onClose={onClose}
    >
      <p>{text}</p>
    </ActDialog>
  )
}

function testText(answer: unknown): string {
  const { success, statusCode, latencyMs, error } = Object(answer)
  return success === true ? `Status ${statusCode} after ${duration(latencyMs)}` : `Test failed (${error})`
}
