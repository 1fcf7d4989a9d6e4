import { useState } from 'preact/hooks'
import type { Problem } from '../../api/client.ts'
import { useApi } from '../../api/context.ts'
import type { ShownType } from '../../api/shapes.ts'
import { useAct } from '../../api/use-act.ts'
import { Dialog } from '../../parts/dialog.tsx'
import { LinesField, ReasonField, SelectField, TextField, Tick } from '../../parts/fields.tsx'
import { JsonField, payloadIssues, readJson } from '../../parts/json-field.tsx'
import { ErrorState } from '../../parts/states.tsx'
import { useToast } from '../../parts/toast.tsx'
import { routeTo } from '../../router/route.ts'
import { goTo } from '../../router/use-route.ts'
import { type Field, fieldsOf, payloadOf } from './schema-form.ts'

interface EnqueueProps {
  readonly type: ShownType
  readonly onClose: () => void
}

/** A field for each part of the payload, where its schema is known and a form can express it; otherwise JSON. */
export function EnqueueForm({ type: { type, definition, defined }, onClose }: EnqueueProps) {
  const api = useApi()
  const toast = useToast()
  const [fields] = useState(() => fieldsOf(definition?.schema))
  const [values, setValues] = useState<ReadonlyMap<string, string>>(new Map())
  const [asJson, setAsJson] = useState(fields === null)
  const [text, setText] = useState('{}')
  const [reason, setReason] = useState('')
  const json = readJson(text)
  const payload = asJson || fields === null ? (json.ok ? json.value : null) : payloadOf(fields, values)
  const why = reason.trim() === '' ? {} : { reason: reason.trim() }
  const act = useAct(() => api.call('enqueueJob', { body: { type, payload, ...why } }))
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault()
    const receipt = asJson && !json.ok ? null : await act.run()
    if (receipt === null) return
    onClose()
    toast({ text: `Enqueued: ${type}` })
    goTo(routeTo('jobs', receipt.id))
  }
  const issues = payloadIssues(act.problem)
  const change = (path: string, value: string): void => setValues((all) => new Map(all).set(path, value))
  const toJson = (): void => {
    setText(JSON.stringify(payload, null, 2))
    setAsJson(true)
  }
  return (
    <Dialog title={`Enqueue ${type}`} onClose={onClose}>
      <form onSubmit={submit} noValidate>
        {!asJson && fields !== null ? (
          <Fields fields={fields} values={values} change={change} issues={issues} />
        ) : (
          <JsonField label="Payload" value={text} onInput={setText} issues={issues} rows={8} hint={hintOf(defined)} />
        )}
        {!asJson && (
          <button type="button" class="button small" onClick={toJson}>
            Write it as JSON
          </button>
        )}
        <ReasonField value={reason} onInput={setReason} required={false} />
        {act.problem !== null && !areAllShown(issues, asJson ? null : fields) && <ErrorState problem={act.problem} />}
        <div class="dialog-foot">
          <button type="button" class="button" onClick={onClose}>
            Back
          </button>
          <button type="submit" class="button primary" disabled={act.isBusy || (asJson && !json.ok)}>
            Enqueue
          </button>
        </div>
      </form>
    </Dialog>
  )
}

function hintOf(defined: boolean): string {
  return defined
    ? 'JSON, checked with the schema of the type.'
    : 'This server does not have the definition of the type, so a worker checks the payload.'
}

/** An issue of a part that has no field is shown with the error. */
function areAllShown(issues: Problem['issues'], fields: readonly Field[] | null): boolean {
  if (issues.length === 0) return false
  return fields === null || issues.every(({ path }) => fields.some((field) => isOf(field, path)))
}

function isOf(field: Field, path: string): boolean {
  return path === field.path || path.startsWith(`${field.path}.`)
}

interface FieldsProps {
  readonly fields: readonly Field[]
  readonly values: ReadonlyMap<string, string>
  readonly change: (path: string, value: string) => void
  readonly issues: Problem['issues']
}

function Fields({ fields, values, change, issues }: FieldsProps) {
  return (
    <>
      {fields.map((field) => (
        <OneField
          key={field.path}
          field={field}
          value={values.get(field.path) ?? field.initial}
          onInput={(value) => change(field.path, value)}
          issues={issues.filter(({ path }) => isOf(field, path))}
        />
      ))}
    </>
  )
}

interface OneFieldProps {
  readonly field: Field
  readonly value: string
  readonly onInput: (value: string) => void
  readonly issues: Problem['issues']
}

function OneField({ field, value, onInput, issues }: OneFieldProps) {
  const { kind, hint, isRequired, choices } = field
  const label = isRequired ? field.label : `${field.label} (optional)`
  const said = { ...(hint !== undefined && { hint }) }
  switch (kind) {
    case 'boolean':
      return (
        <div class="field">
          <Tick label={field.label} checked={value === 'true'} onChange={(on) => onInput(on ? 'true' : '')} />
        </div>
      )
    case 'choice':
      return (
        <SelectField
          label={label}
          value={value}
          onChange={onInput}
          choices={[['', isRequired ? 'choose' : 'not given'], ...choices.map((one) => [one, one] as const)]}
          issues={issues}
        />
      )
    case 'list':
      return <LinesField label={label} value={value} onInput={onInput} issues={issues} hint={hint ?? 'One per line.'} />
    case 'number':
      return (
        <TextField label={label} type="number" step="any" value={value} onInput={onInput} issues={issues} {...said} />
      )
    case 'time':
      return <TextField label={label} type="datetime-local" value={value} onInput={onInput} issues={issues} {...said} />
    case 'text':
      return <TextField label={label} value={value} onInput={onInput} issues={issues} {...said} />
    default:
      return kind satisfies never
  }
}
