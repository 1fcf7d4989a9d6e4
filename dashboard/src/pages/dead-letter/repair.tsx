import { useState } from 'preact/hooks'
import { useApi } from '../../api/context.ts'
import type { ShownLetter } from '../../api/shapes.ts'
import { useAct } from '../../api/use-act.ts'
import { ActButton, ReasonField, Tick } from '../../parts/fields.tsx'
import { Icon } from '../../parts/icon.tsx'
import { JsonField, payloadIssues } from '../../parts/json-field.tsx'
import { readJson } from '../../parts/json-text.ts'
import { Card } from '../../parts/page.tsx'
import { ErrorState } from '../../parts/states.tsx'
import { useToast } from '../../parts/toast.tsx'
import { routeTo } from '../../router/route.ts'
import { goTo } from '../../router/use-route.ts'
import { EditNotice } from '../edited-payload.tsx'

function hintOf({ redacted, checked }: ShownLetter): string {
  const hidden = redacted
    ? 'Parts of this payload are hidden. Leave [redacted] where it is to keep the stored value, or type a new one. '
    : ''
  return hidden + checkOf(checked)
}

function checkOf(checked: boolean): string {
  if (checked) return 'It is checked against the definition of the type before it is stored.'
  return 'This server does not have the definition of the type, so the payload is stored unchecked.'
}

interface Draft {
  readonly text: string
  readonly reason: string
  readonly force: boolean
}

/** Sends a draft, as a dry run or for real. */
function useReplay(letter: ShownLetter, draft: Draft, isEdited: boolean) {
  const api = useApi()
  const send = (dryRun: boolean) => {
    const json = readJson(draft.text)
    const reason = draft.reason.trim()
    return api.call('replayDeadLetter', {
      params: { id: letter.job.id },
      body: {
        dryRun,
        force: draft.force,
        ...(reason !== '' && { reason }),
        ...(isEdited && json.ok && { payload: json.value }),
      },
    })
  }
  return { check: useAct(() => send(true)), replay: useAct(() => send(false)) }
}

/** The payload, to be edited and replayed. Live updates do not overwrite the draft. */
export function Repair({ letter }: { readonly letter: ShownLetter }) {
  const toast = useToast()
  const [original] = useState(() => JSON.stringify(letter.job.payload, null, 2) ?? 'null')
  const [draft, setDraft] = useState<Draft>({ text: original, reason: '', force: false })
  const [isChecked, setChecked] = useState(false)
  const isEdited = draft.text !== original
  const { check, replay } = useReplay(letter, draft, isEdited)
  const problem = replay.problem ?? check.problem
  const issues = payloadIssues(problem)
  const change = (part: Partial<Draft>): void => {
    setDraft({ ...draft, ...part })
    setChecked(false)
    check.clear()
    replay.clear()
  }
  const isSound = readJson(draft.text).ok && letter.job.state === 'dead_letter'
  const send = async (): Promise<void> => {
    check.clear()
    if ((await replay.run()) === null) return
    toast({ text: 'Replayed. This page follows the job.' })
    goTo(routeTo('jobs', letter.job.id))
  }
  const tryOut = async (): Promise<void> => {
    replay.clear()
    setChecked((await check.run()) !== null)
  }
  return (
    <Card title="Fix and replay">
      <EditNotice audit={letter.audit} />
      <JsonField
        label="Payload"
        value={draft.text}
        onInput={(text) => change({ text })}
        issues={issues}
        hint={hintOf(letter)}
        rows={Math.min(24, Math.max(8, original.split('\n').length + 1))}
      />
      <ReasonField value={draft.reason} onInput={(reason) => change({ reason })} required={false} />
      {letter.job.replays > 0 && (
        <Tick
          label="Even so: also if it was already replayed too often"
          checked={draft.force}
          onChange={(force) => change({ force })}
        />
      )}
      {problem !== null && issues.length === 0 && <ErrorState problem={problem} />}
      {isChecked && (
        <p class="notice tone-good" role="status">
          <Icon name="check" />
          <span>This can be replayed. Nothing has been changed yet.</span>
        </p>
      )}
      <div class="actions">
        <ActButton
          icon="again"
          needs="operator"
          look="primary"
          disabled={!isSound || replay.isBusy}
          onClick={() => void send()}
        >
          {isEdited ? 'Replay with this payload' : 'Replay as it is'}
        </ActButton>
        <ActButton needs="operator" disabled={!isSound || check.isBusy} onClick={() => void tryOut()}>
          Dry run
        </ActButton>
        {isEdited && (
          <button type="button" class="button" onClick={() => change({ text: original })}>
            Reset
          </button>
        )}
      </div>
    </Card>
  )
}
