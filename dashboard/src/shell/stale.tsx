import { useEffect, useState } from 'preact/hooks'
import { useLiveState } from '../live/context.ts'
import { Icon } from '../parts/icon.tsx'
import { Ago } from '../parts/time.tsx'

const PATIENCE_MS = 2_000

/** Whether the connection has been lost for a moment already: most losses are mended before anybody could read of them. */
function useIsLost(): boolean {
  const state = useLiveState()
  const [isLost, setLost] = useState(false)
  useEffect(() => {
    if (state === 'live') setLost(false)
    if (state !== 'waiting') return
    const timer = setTimeout(() => setLost(true), PATIENCE_MS)
    return () => clearTimeout(timer)
  }, [state])
  return isLost
}

/** On every page: without a connection what it shows is old, and nothing else would say so. */
export function Stale({ atMs }: { readonly atMs: number }) {
  if (!useIsLost()) return null
  return (
    <p class="notice tone-bad" role="status">
      <Icon name="warn" />
      <span>
        <strong>No connection to the server.</strong> What you see here is from <Ago atMs={atMs} />. Check that{' '}
        <code>millrace serve</code> or <code>millrace start</code> is running; this page reconnects by itself.
      </span>
    </p>
  )
}
