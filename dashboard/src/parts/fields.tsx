import type { ComponentChildren } from 'preact'
import { useId } from 'preact/hooks'
import { mayAct, useSession } from '../api/context.ts'
import type { Role } from '../api/shapes.ts'
import { Icon, type IconName } from './icon.tsx'

type Issues = readonly { readonly path: string; readonly message: string }[]

/** What a field says: what the server found wrong with its value, otherwise its hint. */
function Said({
  id,
  issues,
  hint,
}: {
  readonly id: string
  readonly issues: Issues
  readonly hint?: string | undefined
}) {
  if (issues.length > 0) {
    return (
      <p class="hint text-bad" id={id} role="alert">
        {issues.map(({ message }) => message).join('; ')}
      </p>
    )
  }
  return hint === undefined ? null : (
    <p class="hint" id={id}>
      {hint}
    </p>
  )
}

/** The attributes of a field that says something. */
function saying(id: string, issues: Issues, hint?: string) {
  return {
    id,
    'aria-describedby': hint === undefined && issues.length === 0 ? undefined : `${id}-said`,
    'aria-invalid': issues.length > 0,
  }
}

interface TextFieldProps {
  readonly label: string
  readonly value: string
  readonly onInput: (value: string) => void
  readonly required?: boolean
  readonly hint?: string
  readonly placeholder?: string
  readonly issues?: Issues
  readonly type?: 'text' | 'number' | 'password' | 'datetime-local'
  readonly maxLength?: number
  readonly min?: string
  readonly max?: string
  readonly step?: string
}

export function TextField(props: TextFieldProps) {
  const { label, value, onInput, required = false, hint, issues = [], type = 'text', ...rest } = props
  const id = useId()
  const given = {
    ...saying(id, issues, hint),
    value,
    required,
    autoComplete: 'off',
    onInput: (event: { readonly currentTarget: HTMLInputElement }) => onInput(event.currentTarget.value),
    ...rest,
  }
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {type === 'text' && <input type="text" {...given} />}
      {type === 'number' && <input type="number" {...given} />}
      {type === 'password' && <input type="password" {...given} />}
      {type === 'datetime-local' && <input type="datetime-local" {...given} />}
      <Said id={`${id}-said`} issues={issues} hint={hint} />
    </div>
  )
}

interface LinesFieldProps {
  readonly label: string
  readonly value: string
  readonly onInput: (value: string) => void
  readonly hint: string
  readonly issues: Issues
}

/** A field of several lines. */
export function LinesField({ label, value, onInput, hint, issues }: LinesFieldProps) {
  const id = useId()
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <textarea
        {...saying(id, issues, hint)}
        rows={3}
        value={value}
        autoComplete="off"
        onInput={(event) => onInput(event.currentTarget.value)}
      />
      <Said id={`${id}-said`} issues={issues} hint={hint} />
    </div>
  )
}

interface SuggestedFieldProps {
  readonly label: string
  readonly value: string
  readonly suggestions: readonly string[]
  readonly onInput: (value: string) => void
  readonly issues?: Issues
}

/** A text field with suggestions; any other text is allowed. */
export function SuggestedField({ label, value, suggestions, onInput, issues = [] }: SuggestedFieldProps) {
  const id = useId()
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <input
        {...saying(id, issues)}
        list={`${id}-list`}
        value={value}
        required
        maxLength={128}
        autoComplete="off"
        onInput={(event) => onInput(event.currentTarget.value)}
      />
      <datalist id={`${id}-list`}>
        {suggestions.map((one) => (
          <option key={one} value={one} />
        ))}
      </datalist>
      <Said id={`${id}-said`} issues={issues} />
    </div>
  )
}

interface SelectFieldProps {
  readonly label: string
  readonly value: string
  readonly choices: readonly (readonly [value: string, text: string])[]
  readonly onChange: (value: string) => void
  readonly issues?: Issues
}

export function SelectField({ label, value, choices, onChange, issues = [] }: SelectFieldProps) {
  const id = useId()
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <select {...saying(id, issues)} value={value} onChange={(event) => onChange(event.currentTarget.value)}>
        {choices.map(([choice, text]) => (
          <option key={choice} value={choice}>
            {text}
          </option>
        ))}
      </select>
      <Said id={`${id}-said`} issues={issues} />
    </div>
  )
}

interface ReasonFieldProps {
  readonly value: string
  readonly onInput: (value: string) => void
  readonly required: boolean
}

export function ReasonField({ value, onInput, required }: ReasonFieldProps) {
  return (
    <TextField
      label={required ? 'Reason' : 'Reason (optional)'}
      value={value}
      onInput={onInput}
      required={required}
      maxLength={500}
      hint="The audit stores it with your name."
    />
  )
}

interface TickProps {
  readonly label: ComponentChildren
  readonly checked: boolean
  readonly onChange: (checked: boolean) => void
}

export function Tick({ label, checked, onChange }: TickProps) {
  return (
    <label class="tick">
      <input type="checkbox" checked={checked} onChange={(event) => onChange(event.currentTarget.checked)} />
      <span>{label}</span>
    </label>
  )
}

interface ActButtonProps {
  readonly children: ComponentChildren
  readonly icon?: IconName
  /** The role that the server requires. */
  readonly needs: Role
  readonly onClick: () => void
  readonly look?: 'primary' | 'danger' | 'small'
  readonly label?: string
  readonly disabled?: boolean
}

/** A button for a write. Without the role it is disabled and says which one it needs. */
export function ActButton({ children, icon, needs, onClick, look, label, disabled = false }: ActButtonProps) {
  const session = useSession()
  const may = mayAct(session, needs)
  const title = may ? undefined : `This needs the role ${needs}; you have the role ${session.role}.`
  return (
    <button
      type="button"
      class={`button ${look ?? ''}`}
      disabled={!may || disabled}
      title={title}
      aria-label={label}
      onClick={onClick}
    >
      {icon !== undefined && <Icon name={icon} />}
      {children}
    </button>
  )
}

interface SegmentProps {
  readonly group: string
  readonly text: string
  readonly isChosen: boolean
  readonly choose: () => void
}

/** One of a few choices that stand side by side; they share the name of their group. */
export function Segment({ group, text, isChosen, choose }: SegmentProps) {
  return (
    <label class="segment">
      <input type="radio" name={group} checked={isChosen} onChange={choose} />
      <span>{text}</span>
    </label>
  )
}
