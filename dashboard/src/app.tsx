import { useCallback, useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { Api, type Problem } from './api/client.ts'
import { AccessContext } from './api/context.ts'
import type { Session } from './api/shapes.ts'
import { isSendable, keepToken, OtherTabs, readToken } from './api/token.ts'
import { LiveContext } from './live/context.ts'
import { Live } from './live/live.ts'
import { pause } from './live/pause.ts'
import { ErrorState, Loading } from './parts/states.tsx'
import { Toasts } from './parts/toast.tsx'
import { Shell } from './shell/shell.tsx'
import { TokenPrompt } from './shell/token-prompt.tsx'

type Gate =
  | { readonly at: 'knocking' }
  | { readonly at: 'shut'; readonly problem: Problem }
  | { readonly at: 'token'; readonly wasRefused: boolean }
  | { readonly at: 'open'; readonly session: Session }

const KNOCK_AGAIN_MS = 3_000
const REST_AFTER_MS = 60_000

/** The folder of the page, wherever it is mounted; the API is next to it. */
const root = new URL('.', document.baseURI).pathname

/** Rests while hidden: a background tab costs the server nothing. */
function useLiveStream(api: Api, isWanted: boolean): Live {
  const live = useMemo(() => new Live({ open: (signal) => api.stream(signal), wait: pause }), [api])
  useEffect(() => {
    if (!isWanted) return
    let resting: ReturnType<typeof setTimeout> | undefined
    const onVisibility = (): void => {
      clearTimeout(resting)
      if (document.hidden) resting = setTimeout(() => live.stop(), REST_AFTER_MS)
      else live.start()
    }
    onVisibility()
    document.addEventListener('visibilitychange', onVisibility)
    return () => {
      clearTimeout(resting)
      document.removeEventListener('visibilitychange', onVisibility)
      live.stop()
    }
  }, [live, isWanted])
  return live
}

/** Asks for the session, and for a token where one is needed: the other tabs first, then the user. */
function useGate() {
  const [gate, setGate] = useState<Gate>({ at: 'knocking' })
  const tabs = useRef<OtherTabs | null>(null)
  const askForToken = useCallback(() => {
    setGate({ at: 'token', wasRefused: readToken() !== null })
    keepToken(null)
  }, [])
  const api = useMemo(() => new Api({ root, token: readToken, onUnauthorized: askForToken }), [askForToken])
  const knock = useCallback(async () => {
    const result = await api.call('showSession', {})
    if (result.ok) {
      setGate({ at: 'open', session: result.value })
      const token = readToken()
      // Not before: a wrong one would be refused in every tab.
      if (token !== null) tabs.current?.give(token)
    } else if (result.problem.status !== 401) setGate({ at: 'shut', problem: result.problem })
  }, [api])
  useEffect(() => {
    const others = new OtherTabs(root, {
      onToken: () => void knock(),
      onForgotten: () => setGate((now) => (now.at === 'open' ? { at: 'token', wasRefused: false } : now)),
    })
    tabs.current = others
    // Beside the request: a server without tokens must not be waited for.
    if (readToken() === null) others.ask()
    void knock()
    return () => others.close()
  }, [knock])
  return { gate, setGate, api, knock, tabs }
}

export function App() {
  const { gate, setGate, api, knock, tabs } = useGate()
  useEffect(() => {
    if (gate.at !== 'shut') return
    const timer = setTimeout(() => void knock(), KNOCK_AGAIN_MS)
    return () => clearTimeout(timer)
  }, [gate, knock])
  const live = useLiveStream(api, gate.at === 'open')
  const access = useMemo(() => {
    if (gate.at !== 'open') return null
    const signOut = (): void => {
      keepToken(null)
      tabs.current?.forget()
      setGate({ at: 'knocking' })
      void knock()
    }
    return { api, session: gate.session, signOut }
  }, [api, gate, knock, setGate, tabs])

  if (gate.at === 'token') {
    const onToken = (token: string): void => {
      if (isSendable(token)) {
        keepToken(token)
        void knock()
      } else {
        setGate({ at: 'token', wasRefused: true })
      }
    }
    return <TokenPrompt wasRefused={gate.wasRefused} onToken={onToken} />
  }
  if (access === null) return <Waiting gate={gate} knock={() => void knock()} />
  return (
    <AccessContext.Provider value={access}>
      <LiveContext.Provider value={live}>
        <Toasts>
          <Shell />
        </Toasts>
      </LiveContext.Provider>
    </AccessContext.Provider>
  )
}

function Waiting({ gate, knock }: { readonly gate: Gate; readonly knock: () => void }) {
  return (
    <main class="gate">
      {gate.at === 'shut' ? (
        <div>
          <h1>Millrace</h1>
          <ErrorState problem={gate.problem} retry={knock} />
        </div>
      ) : (
        <Loading />
      )}
    </main>
  )
}
