import { useId, useState } from 'preact/hooks'
import { useApi } from '../api/context.ts'
import type { Answer, Routes } from '../api/shapes.ts'
import { ActDialog } from '../parts/act-dialog.tsx'
import { Dialog } from '../parts/dialog.tsx'
import { CopyButton } from '../parts/id.tsx'
import { Exact } from '../parts/time.tsx'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const TIMES = [
  { forMs: HOUR_MS, text: 'an hour' },
  { forMs: DAY_MS, text: 'a day' },
  { forMs: 7 * DAY_MS, text: 'a week' },
  { forMs: 30 * DAY_MS, text: '30 days' },
] as const

/** Makes a link with which others can look without a token. */
export function LinkDialog({ onClose }: { readonly onClose: () => void }) {
  const api = useApi()
  const timeId = useId()
  const [forMs, setForMs] = useState<number>(DAY_MS)
  const [made, setMade] = useState<Answer<Routes['createLink']> | null>(null)
  if (made !== null) return <MadeLink made={made} onClose={onClose} />
  return (
    <ActDialog
      title="Make a read-only link?"
      verb="Make the link"
      act={(reason) => api.call('createLink', { body: { forMs, ...(reason !== undefined && { reason }) } })}
      onDone={setMade}
      onClose={onClose}
    >
      <p>Everybody who has the link sees all pages, and can change nothing. It cannot be taken back on its own.</p>
      <div class="field">
        <label for={timeId}>Works for</label>
        <select id={timeId} value={String(forMs)} onChange={(event) => setForMs(Number(event.currentTarget.value))}>
          {TIMES.map((time) => (
            <option key={time.forMs} value={String(time.forMs)}>
              {time.text}
            </option>
          ))}
        </select>
      </div>
    </ActDialog>
  )
}

function MadeLink({ made, onClose }: { readonly made: Answer<Routes['createLink']>; readonly onClose: () => void }) {
  const linkId = useId()
  const link = new URL(made.path, location.origin).href
  return (
    <Dialog title="The read-only link" onClose={onClose}>
      <p>
        It works until <Exact atMs={made.untilMs} />, and is not shown again.
      </p>
      <div class="field">
        <label for={linkId}>Link</label>
        <div class="with-copy">
          <input id={linkId} type="text" readOnly value={link} onFocus={(event) => event.currentTarget.select()} />
          <CopyButton text={link} what="the link" />
        </div>
      </div>
      <div class="dialog-foot">
        <button type="button" class="button" onClick={onClose}>
          Done
        </button>
      </div>
    </Dialog>
  )
}
