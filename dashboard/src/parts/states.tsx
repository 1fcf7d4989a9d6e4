import type { ComponentChildren } from 'preact'
import type { Problem } from '../api/client.ts'
import type { Loaded } from '../api/use-answer.ts'
import { Icon, type IconName } from './icon.tsx'

/** An empty page, with what to do. */
export function EmptyState(props: {
  readonly icon: IconName
  readonly title: string
  readonly children?: ComponentChildren
}) {
  return (
    <div class="empty">
      <Icon name={props.icon} />
      <h2>{props.title}</h2>
      {props.children}
    </div>
  )
}

/** The server's error, and what to do. */
export function ErrorState({ problem, retry }: { readonly problem: Problem; readonly retry?: () => void }) {
  return (
    <div class="notice tone-bad" role="alert">
      <Icon name="warn" />
      <div>
        <strong>{headline(problem)}</strong>
        <p>{problem.message}</p>
        {problem.issues.length > 0 && (
          <ul>
            {problem.issues.map(({ path, message }) => (
              <li key={path + message}>{path === '' ? message : `${path}: ${message}`}</li>
            ))}
          </ul>
        )}
      </div>
      {retry !== undefined && (
        <button type="button" class="button small" onClick={retry}>
          Try again
        </button>
      )}
    </div>
  )
}

function headline({ status, code }: Problem): string {
  if (status === 0) return 'No connection to the server'
  if (status === 403) return 'You may not do this'
  if (status === 404) return 'Not found'
  if (status === 409) return 'This has changed in the meantime'
  if (status === 501) return 'This engine cannot do that'
  if (status >= 500) return 'The server could not answer'
  return `Refused (${code})`
}

export function Loading({ rows = 4 }: { readonly rows?: number }) {
  return (
    <div class="loading" role="status">
      <span class="unseen">Loading…</span>
      {Array.from({ length: rows }, (_, row) => (
        <div key={row} class="loading-row" />
      ))}
    </div>
  )
}

/** Loading, failed or loaded. A problem is shown above an older answer. */
export function Answered<Value>(props: {
  readonly of: Loaded<Value>
  readonly rows?: number
  readonly children: (value: Value) => ComponentChildren
}) {
  const { value, problem, reload } = props.of
  const retry = (): void => void reload()
  if (value === null) {
    return problem === null ? <Loading rows={props.rows ?? 4} /> : <ErrorState problem={problem} retry={retry} />
  }
  return (
    <>
      {problem !== null && <ErrorState problem={problem} retry={retry} />}
      {props.children(value)}
    </>
  )
}
