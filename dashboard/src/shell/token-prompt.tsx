import { useState } from 'preact/hooks'
import { TextField } from '../parts/fields.tsx'
import { Icon, Wheel } from '../parts/icon.tsx'

interface TokenPromptProps {
  /** Whether a token was refused. */
  readonly wasRefused: boolean
  readonly onToken: (token: string) => void
}

export function TokenPrompt({ wasRefused, onToken }: TokenPromptProps) {
  const [token, setToken] = useState('')
  return (
    <main class="gate">
      <form
        class="card"
        onSubmit={(event) => {
          event.preventDefault()
          onToken(token.trim())
        }}
      >
        <h1>
          <Wheel /> Millrace
        </h1>
        <p>This server needs a token. Ask the person who runs it for one with the role viewer, operator or admin.</p>
        {wasRefused && (
          <div class="notice tone-bad" role="alert">
            <Icon name="warn" />
            <p>The server does not know this token. Check that it is complete, or ask for a new one.</p>
          </div>
        )}
        <TextField
          label="Token"
          type="password"
          value={token}
          onInput={setToken}
          required
          hint="It is kept in the open tabs of this dashboard, and gone when you close them."
        />
        <button type="submit" class="button primary">
          Open
        </button>
      </form>
    </main>
  )
}
