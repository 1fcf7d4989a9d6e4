import { useState } from 'preact/hooks'
import type { Problem } from '../api/client.ts'
import { TextField } from '../parts/fields.tsx'
import { Icon, Wheel } from '../parts/icon.tsx'

interface LoginProps {
  /** Why this page is shown, if not because it is the first one. */
  readonly note: string | null
  readonly onToken: (token: string) => Promise<Problem | null>
}

export function Login({ note, onToken }: LoginProps) {
  const [token, setToken] = useState('')
  const [isBusy, setBusy] = useState(false)
  const [refusal, setRefusal] = useState<string | null>(null)
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault()
    setBusy(true)
    setRefusal(null)
    const problem = await onToken(token.trim())
    setBusy(false)
    if (problem !== null) setRefusal(textOf(problem))
  }
  const said = refusal ?? note
  return (
    <main class="gate">
      <form class="card" onSubmit={submit}>
        <h1>
          <Wheel /> Millrace
        </h1>
        <p>Log in with a token. Ask the person who runs this server for one with the role viewer, operator or admin.</p>
        {said !== null && (
          <div class="notice tone-bad" role="alert">
            <Icon name="warn" />
            <p>{said}</p>
          </div>
        )}
        <TextField
          label="Token"
          type="password"
          value={token}
          onInput={setToken}
          required
          hint="This browser stays logged in, in all tabs, until you log out, close it, or do not use this page for 12 hours. It does not keep the token."
        />
        <button type="submit" class="button primary" disabled={isBusy}>
          Log in
        </button>
      </form>
    </main>
  )
}

function textOf({ status, message }: Problem): string {
  if (status === 401) return 'The server does not know this token. Check that it is complete, or ask for a new one.'
  if (status === 429) return 'Too many logins have failed. Wait a minute, then try again.'
  return message
}
