import { useEffect, useState } from 'preact/hooks'
import { useApi } from '../../api/context.ts'
import type { ShownSchedule } from '../../api/shapes.ts'
import { useAct } from '../../api/use-act.ts'
import { useAnswer } from '../../api/use-answer.ts'
import { Dialog } from '../../parts/dialog.tsx'
import { ReasonField, SelectField, SuggestedField, TextField } from '../../parts/fields.tsx'
import { READER_ZONE } from '../../parts/format.ts'
import { JsonField } from '../../parts/json-field.tsx'
import { readJson } from '../../parts/json-text.ts'
import { Answered, ErrorState } from '../../parts/states.tsx'
import { useToast } from '../../parts/toast.tsx'
import { useOverview } from '../../shell/overview-context.ts'
import { bodyOf, changesOf, type Draft, draftOf, type FieldIssues, issuesBy, timesOf } from './draft.ts'
import { RunTimes } from './runs.tsx'

interface Ends {
  readonly onClose: () => void
  readonly onDone: () => void
}

export function NewSchedule(ends: Ends) {
  return (
    <Dialog title="New schedule" onClose={ends.onClose}>
      <Form schedule={null} {...ends} />
    </Dialog>
  )
}

/** Loaded once: live updates do not overwrite what is typed. */
export function EditSchedule({ name, ...ends }: Ends & { readonly name: string }) {
  const schedule = useAnswer('showSchedule', { params: { name } })
  return (
    <Dialog title={`Edit ${name}`} onClose={ends.onClose}>
      <Answered of={schedule}>{(shown) => <Form schedule={shown} {...ends} />}</Answered>
    </Dialog>
  )
}

/** How long to wait after a key before the runs are computed anew. */
const TYPING_MS = 250

function usePreview(draft: Draft, name: string | undefined) {
  const [asked, ask] = useState(() => timesOf(draft, name))
  const key = JSON.stringify(timesOf(draft, name))
  useEffect(() => {
    const timer = setTimeout(() => ask(JSON.parse(key)), TYPING_MS)
    return () => clearTimeout(timer)
  }, [key])
  const preview = useAnswer('previewCron', { query: asked })
  const { nextAtMs = [], issues = [] } = preview.value ?? {}
  return { nextAtMs, issues, tz: asked.tz, problem: preview.problem }
}

function useSave(schedule: ShownSchedule | null, original: Draft, draft: Draft, reason: string) {
  const api = useApi()
  const why = reason.trim() === '' ? {} : { reason: reason.trim() }
  return useAct(() =>
    schedule === null
      ? api.call('addSchedule', { body: { ...bodyOf(draft), ...why } })
      : api.call('changeSchedule', {
          params: { name: schedule.name },
          body: { ...changesOf(original, draft), ...why },
        }),
  )
}

function Form({ schedule, onClose, onDone }: Ends & { readonly schedule: ShownSchedule | null }) {
  const toast = useToast()
  const [original] = useState(() => draftOf(schedule))
  const [draft, setDraft] = useState(original)
  const [reason, setReason] = useState('')
  const preview = usePreview(draft, schedule?.name)
  const save = useSave(schedule, original, draft, reason)
  const issues = issuesBy(save.problem, preview.issues)
  const change = (part: Partial<Draft>): void => {
    setDraft({ ...draft, ...part })
    save.clear()
  }
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault()
    const saved = readJson(draft.payload).ok ? await save.run() : null
    if (saved === null) return
    toast({ text: `${schedule === null ? 'Added' : 'Changed'}: ${saved.name}` })
    onDone()
  }
  const isSaid = FIELDS.some((field) => issues(field).length > 0)
  return (
    <form onSubmit={submit}>
      {schedule === null && <NewFields draft={draft} change={change} issues={issues} />}
      <TimeFields draft={draft} change={change} issues={issues} />
      {preview.issues.length === 0 && <RunTimes nextAtMs={preview.nextAtMs} tz={preview.tz} />}
      <JsonField
        label="Payload"
        value={draft.payload}
        onInput={(payload) => change({ payload })}
        issues={issues('payload')}
        hint={hintOf(schedule)}
        rows={5}
      />
      <BoundFields draft={draft} change={change} issues={issues} />
      <ReasonField value={reason} onInput={setReason} required={false} />
      {save.problem !== null && !isSaid && <ErrorState problem={save.problem} />}
      <div class="dialog-foot">
        <button type="button" class="button" onClick={onClose}>
          Back
        </button>
        <button type="submit" class="button primary" disabled={save.isBusy || !readJson(draft.payload).ok}>
          {schedule === null ? 'Add' : 'Save'}
        </button>
      </div>
    </form>
  )
}

/** Whose issues stand beside them. */
const FIELDS = ['name', 'type', 'cron', 'tz', 'payload', 'startMs', 'endMs', 'limit', 'overlap']

function hintOf(schedule: ShownSchedule | null): string {
  if (schedule?.redacted === true) {
    return 'Parts of it are hidden. Leave [redacted] where it is to keep the stored value, or type a new one.'
  }
  return schedule?.checked === false
    ? 'This server does not have the definition of the type, so the payload is stored unchecked.'
    : 'JSON, as the type takes it. It is checked where this server has the definition of the type.'
}

interface PartProps {
  readonly draft: Draft
  readonly change: (part: Partial<Draft>) => void
  readonly issues: FieldIssues
}

function NewFields({ draft, change, issues }: PartProps) {
  const types = Object.keys(useOverview()?.counts ?? {})
  return (
    <>
      <TextField
        label="Name"
        value={draft.name}
        onInput={(name) => change({ name })}
        required
        maxLength={128}
        issues={issues('name')}
      />
      <SuggestedField
        label="Type"
        value={draft.type}
        onInput={(type) => change({ type })}
        suggestions={types}
        issues={issues('type')}
      />
    </>
  )
}

const ZONES = ['UTC', ...Intl.supportedValuesOf('timeZone')]

function TimeFields({ draft, change, issues }: PartProps) {
  return (
    <>
      <TextField
        label="Cron"
        value={draft.cron}
        onInput={(cron) => change({ cron })}
        required
        maxLength={200}
        hint="minute hour day month weekday, or six fields with the second first"
        issues={issues('cron')}
      />
      <SuggestedField
        label="Time zone"
        value={draft.tz}
        onInput={(tz) => change({ tz })}
        suggestions={ZONES}
        issues={issues('tz')}
      />
    </>
  )
}

const MISSED = [
  ['one', 'run the last of them'],
  ['all', 'run every one'],
  ['skip', 'run none'],
] as const
const OVERLAP = [
  ['skip', 'leave the tick out'],
  ['allow', 'run beside it'],
] as const

function BoundFields({ draft, change, issues }: PartProps) {
  const hint = `In your time zone, ${READER_ZONE}.`
  return (
    <>
      <TextField
        label="No run before (optional)"
        type="datetime-local"
        step="1"
        value={draft.start}
        onInput={(start) => change({ start })}
        hint={hint}
        issues={issues('startMs')}
      />
      <TextField
        label="No run after (optional)"
        type="datetime-local"
        step="1"
        value={draft.end}
        onInput={(end) => change({ end })}
        hint={hint}
        issues={issues('endMs')}
      />
      <TextField
        label="At most so many runs (optional)"
        type="number"
        min="1"
        step="1"
        value={draft.limit}
        onInput={(limit) => change({ limit })}
        issues={issues('limit')}
      />
      <SelectField
        label="Ticks that no keeper ran"
        value={draft.missed}
        onChange={(missed) => change({ missed })}
        choices={MISSED}
      />
      <SelectField
        label="While the run before is not over"
        value={draft.overlap}
        onChange={(overlap) => change({ overlap })}
        choices={OVERLAP}
        issues={issues('overlap')}
      />
    </>
  )
}
