import { useState } from 'preact/hooks'
import type { Api, Result } from '../../api/client.ts'
import { useApi } from '../../api/context.ts'
import type { BulkAnswer, BulkOutcome, Operation } from '../../api/shapes.ts'
import { useAct } from '../../api/use-act.ts'
import { Dialog } from '../../parts/dialog.tsx'
import { ReasonField, TextField, Tick } from '../../parts/fields.tsx'
import { whole } from '../../parts/format.ts'
import { Icon } from '../../parts/icon.tsx'
import { ErrorState } from '../../parts/states.tsx'
import { refusalText } from '../../parts/words.ts'
import { type Selection, selectionText } from './selection-words.ts'

export type BulkKind = Operation['kind']

interface Words {
  readonly verb: string
  readonly done: string
  readonly text: string
  readonly danger: boolean
  readonly needsReason: boolean
}

const WORDS: Readonly<Record<BulkKind, Words>> = {
  replay: {
    verb: 'Replay',
    done: 'replayed',
    text: 'They go back into the queue as they are, with all their attempts.',
    danger: false,
    needsReason: false,
  },
  discard: {
    verb: 'Discard',
    done: 'discarded',
    text: 'They leave this list and will not run. It can be undone while they are kept.',
    danger: true,
    needsReason: true,
  },
  purge: {
    verb: 'Purge',
    done: 'deleted for good',
    text: 'They are deleted for good, with their history. This cannot be undone.',
    danger: true,
    needsReason: true,
  },
}

interface Form {
  readonly reason: string
  /** Letters per second, as typed. */
  readonly rate: string
  readonly force: boolean
}

function send(
  api: Api,
  kind: BulkKind,
  selection: Selection,
  form: Form,
  dryRun: boolean,
): Promise<Result<BulkAnswer>> {
  const rate = Number(form.rate)
  const body = { selection, dryRun, force: form.force, ...(form.rate.trim() !== '' && { rate }) }
  const given = form.reason.trim()
  // A dry run changes nothing, so nobody has to say why before it.
  const reason = given === '' && dryRun ? 'dry run' : given
  switch (kind) {
    case 'replay':
      return api.call('replayDeadLetters', { body: { ...body, ...(given !== '' && { reason }) } })
    case 'discard':
      return api.call('discardDeadLetters', { body: { ...body, reason } })
    case 'purge':
      return api.call('purgeDeadLetters', { body: { ...body, reason } })
    default:
      return kind satisfies never
  }
}

interface BulkDialogProps {
  readonly kind: BulkKind
  readonly selection: Selection
  readonly onStarted: (operation: Operation) => void
  readonly onClose: () => void
}

export function BulkDialog({ kind, selection, onStarted, onClose }: BulkDialogProps) {
  const api = useApi()
  const words = WORDS[kind]
  const [form, setForm] = useState<Form>({ reason: '', rate: '', force: false })
  const [checked, setChecked] = useState<BulkOutcome | null>(null)
  const dry = useAct(() => send(api, kind, selection, form, true))
  const real = useAct(() => send(api, kind, selection, form, false))
  const problem = real.problem ?? dry.problem
  const check = async (): Promise<void> => {
    real.clear()
    const answer = await dry.run()
    setChecked(answer?.outcome ?? null)
  }
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault()
    const answer = await real.run()
    if (answer?.operation) onStarted(answer.operation)
  }
  return (
    <Dialog title={`${words.verb} ${selectionText(selection)}?`} onClose={onClose}>
      <form onSubmit={submit}>
        <p>{words.text}</p>
        <BulkFields kind={kind} form={form} setForm={setForm} />
        {checked !== null && <DryRun outcome={checked} words={words} />}
        {problem !== null && <ErrorState problem={problem} />}
        <div class="dialog-foot">
          <button type="button" class="button" onClick={onClose}>
            Back
          </button>
          <button type="button" class="button" disabled={dry.isBusy} onClick={() => void check()}>
            Dry run
          </button>
          <button type="submit" class={`button ${words.danger ? 'danger' : 'primary'}`} disabled={real.isBusy}>
            {words.verb}
          </button>
        </div>
      </form>
    </Dialog>
  )
}

interface BulkFieldsProps {
  readonly kind: BulkKind
  readonly form: Form
  readonly setForm: (form: Form) => void
}

function BulkFields({ kind, form, setForm }: BulkFieldsProps) {
  return (
    <>
      {kind === 'replay' && (
        <TextField
          label="At most per second (optional)"
          type="number"
          min="0.1"
          max="100000"
          step="any"
          value={form.rate}
          onInput={(rate) => setForm({ ...form, rate })}
          placeholder="as fast as it goes"
          hint="A slow replay spares whatever failed before."
        />
      )}
      <ReasonField
        value={form.reason}
        onInput={(reason) => setForm({ ...form, reason })}
        required={WORDS[kind].needsReason}
      />
      <Tick
        label={
          kind === 'replay' ? 'Even so: also those replayed too often already' : 'Even so: also those of critical types'
        }
        checked={form.force}
        onChange={(force) => setForm({ ...form, force })}
      />
    </>
  )
}

function DryRun({ outcome, words }: { readonly outcome: BulkOutcome; readonly words: Words }) {
  return (
    <div class="notice tone-run" role="status">
      <Icon name="check" />
      <div>
        <strong>
          {whole(outcome.done)} of {whole(outcome.seen)} would be {words.done}.
        </strong>{' '}
        Nothing has been changed.
        <Refusals refused={outcome.refused} />
      </div>
    </div>
  )
}

export function Refusals({ refused }: { readonly refused: BulkOutcome['refused'] }) {
  const entries = Object.entries(refused).filter(([, count]) => count > 0)
  if (entries.length === 0) return null
  return (
    <ul>
      {entries.map(([why, count]) => (
        <li key={why}>
          {whole(count)} {refusalText(why)}
        </li>
      ))}
    </ul>
  )
}
