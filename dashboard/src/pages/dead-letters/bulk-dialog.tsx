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
import { type Selection, touchedText } from './selection-words.ts'
import { useCount } from './use-count.ts'

/** An erase is asked for on the command line or over HTTP, by the ids of jobs. */
export type BulkKind = Exclude<Operation['kind'], 'erase' | 'drain' | 'obliterate'>

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

interface Asked {
  readonly kind: BulkKind
  readonly selection: Selection
  readonly form: Form
  readonly dryRun: boolean
}

function send(api: Api, { kind, selection, form, dryRun }: Asked, signal?: AbortSignal): Promise<Result<BulkAnswer>> {
  const rate = Number(form.rate)
  const body = { selection, dryRun, force: form.force, ...(form.rate.trim() !== '' && !dryRun && { rate }) }
  const given = form.reason.trim()
  // A dry run changes nothing, so it needs no reason.
  const reason = given === '' && dryRun ? 'dry run' : given
  switch (kind) {
    case 'replay':
      return api.call('replayDeadLetters', { body: { ...body, ...(given !== '' && { reason }) } }, signal)
    case 'discard':
      return api.call('discardDeadLetters', { body: { ...body, reason } }, signal)
    case 'purge':
      return api.call('purgeDeadLetters', { body: { ...body, reason } }, signal)
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
  const { outcome, problem: uncounted } = useCount(selection, form.force, (counted, signal) =>
    send(api, { kind, selection: counted, form, dryRun: true }, signal),
  )
  // Acts on exactly what was counted, so the number in the title is right.
  const real = useAct(() => send(api, { kind, selection: outcome?.selection ?? selection, form, dryRun: false }))
  const problem = real.problem ?? uncounted
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault()
    if (outcome === null) return
    const answer = await real.run()
    if (answer?.operation) onStarted(answer.operation)
  }
  const isReady = outcome !== null && outcome.done > 0 && !real.isBusy
  return (
    <Dialog title={`${words.verb} ${touchedText(selection, outcome)}?`} onClose={onClose}>
      <form onSubmit={submit}>
        <p>{words.text}</p>
        <BulkFields kind={kind} form={form} setForm={setForm} />
        <DryRun outcome={outcome} words={words} isFailed={uncounted !== null} />
        {problem !== null && <ErrorState problem={problem} />}
        <div class="dialog-foot">
          <button type="button" class="button" onClick={onClose}>
            Back
          </button>
          <button type="submit" class={`button ${words.danger ? 'danger' : 'primary'}`} disabled={!isReady}>
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

interface DryRunProps {
  readonly outcome: BulkOutcome | null
  readonly words: Words
  readonly isFailed: boolean
}

function DryRun({ outcome, words, isFailed }: DryRunProps) {
  if (isFailed) return null
  if (outcome === null) {
    return (
      <p class="quiet" role="status">
        Counting…
      </p>
    )
  }
  return (
    <div class="notice tone-run" role="status">
      <Icon name="check" />
      <div>
        <strong>
          {outcome.interrupted && 'At least '}
          {whole(outcome.done)} of {whole(outcome.seen)} would be {words.done}.
        </strong>{' '}
        Nothing has been changed. Letters that die from now on are left alone.
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
