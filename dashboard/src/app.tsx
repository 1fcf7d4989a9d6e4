import { useEffect, useMemo } from 'preact/hooks'
import type { Api } from './api/client.ts'
import { AccessContext } from './api/context.ts'
import { LiveContext } from './live/context.ts'
import { Live } from './live/live.ts'
import { pause } from './live/pause.ts'
import { ErrorState, Loading } from './parts/states.tsx'
import { Toasts } from './parts/toast.tsx'
import { Login } from './shell/login.tsx'
import { Shell } from './shell/shell.tsx'
import { type Gate, useGate } from './shell/use-gate.ts'

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

export function App() {
  const { gate, api, knock, logIn, logOut } = useGate(root)
  useEffect(() => {
    if (gate.at !== 'shut') return
    const timer = setTimeout(() => void knock(), KNOCK_AGAIN_MS)
    return () => clearTimeout(timer)
  }, [gate, knock])
  const live = useLiveStream(api, gate.at === 'open')
  const access = useMemo(
    () => (gate.at === 'open' ? { api, session: gate.session, logOut: () => void logOut() } : null),
    [api, gate, logOut],
  )

  if (gate.at === 'login') return <Login note={gate.note} onToken={(token) => logIn({ token })} />
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
