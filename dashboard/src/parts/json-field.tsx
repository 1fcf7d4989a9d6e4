import { useId } from 'preact/hooks'
import type { Problem } from '../api/client.ts'
import { type JsonRead, readJson } from './json-text.ts'

export { readJson }

/** What of a refusal is about the field itself; the rest of it is said elsewhere. */
export function payloadIssues(problem: Problem | null): Problem['issues'] {
  if (problem === null) return []
  if (problem.issues.length > 0) return problem.issues
  return problem.code.startsWith('ERR_PAYLOAD') ? [{ path: '', message: problem.message }] : []
}

interface JsonFieldProps {
  readonly label: string
  readonly value: string
  readonly onInput: (value: string) => void
  /** What the server found wrong with the value. */
  readonly issues: readonly { readonly path: string; readonly message: string }[]
  readonly rows?: number
  readonly isReadOnly?: boolean
  readonly hint?: string
}

/** JSON to be written by hand: checked as it is typed, with the server's objections at the field itself. */
export function JsonField({ label, value, onInput, issues, rows = 12, isReadOnly = false, hint }: JsonFieldProps) {
  const id = useId()
  const json = readJson(value)
  const isWrong = !json.ok || issues.length > 0
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <textarea
        id={id}
        class="code"
        rows={rows}
        spellcheck={false}
        autoComplete="off"
        readOnly={isReadOnly}
        value={value}
        aria-invalid={isWrong}
        aria-describedby={`${id}-said`}
        onInput={(event) => onInput(event.currentTarget.value)}
      />
      <div id={`${id}-said`} aria-live="polite">
        <Said json={json} issues={issues} hint={hint} />
      </div>
    </div>
  )
}

interface SaidProps {
  readonly json: JsonRead
  readonly issues: JsonFieldProps['issues']
  readonly hint: string | undefined
}

function Said({ json, issues, hint }: SaidProps) {
  if (!json.ok) return <p class="hint text-bad">This is not JSON yet: {json.why}</p>
  if (issues.length > 0) {
    return (
      <div class="issues" role="alert">
        <ul>
          {issues.map(({ path, message }) => (
            <li key={path + message}>
              {path !== '' && <code>{path}</code>} {message}
            </li>
          ))}
        </ul>
      </div>
    )
  }
  return hint === undefined ? null : <p class="hint">{hint}</p>
}
