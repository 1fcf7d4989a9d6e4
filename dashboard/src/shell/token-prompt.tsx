import { useState } from 'preact/hooks'
import { TextField } from '../parts/fields.tsx'
import { Icon, Wheel } from '../parts/icon.tsx'

interface TokenPromptProps {
  /** Whether a token was given and refused. */
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
        <p>This server asks for a token. Whoever started it has one for you: as viewer, operator or admin.</p>
        {wasRefused && (
          <div class="notice tone-bad" role="alert">
            <Icon name="warn" />
            <p>The server does not know this token. Check that it was copied whole, or ask for a new one.</p>
          </div>
        )}
        <TextField
          label="Token"
          type="password"
          value={token}
          onInput={setToken}
          required
          hint="It is kept in this tab only, and forgotten when you close it."
        />
        <button type="submit" class="button primary">
          Open
        </button>
      </form>
    </main>
  )
}
