import { useId } from 'preact/hooks'
import type { Problem } from '../api/client.ts'
import { type JsonRead, readJson } from './json-text.ts'

export { readJson }

/** The issues of an error that concern the field. */
export function payloadIssues(problem: Problem | null): Problem['issues'] {
  if (problem === null) return []
  if (problem.issues.length > 0) return problem.issues.map(withinPayload)
  return problem.code.startsWith('ERR_PAYLOAD') ? [{ path: '', message: problem.message }] : []
}

/** The user sees the payload, not the body of the request around it. */
function withinPayload({ path, message }: Problem['issues'][number]): Problem['issues'][number] {
  return { path: path.replace(/^body\.payload\.?/, ''), message }
}

interface JsonFieldProps {
  readonly label: string
  readonly value: string
  readonly onInput: (value: string) => void
  /** The server's issues with the value. */
  readonly issues: readonly { readonly path: string; readonly message: string }[]
  readonly rows?: number
  readonly hint?: string
}

/** A JSON field, checked while typing, with the server's issues below it. */
export function JsonField({ label, value, onInput, issues, rows = 12, hint }: JsonFieldProps) {
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
