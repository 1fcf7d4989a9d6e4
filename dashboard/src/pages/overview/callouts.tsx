import { useEffect, useState } from 'preact/hooks'
import { hasFacet, useSession } from '../../api/context.ts'
import type { Overview } from '../../api/shapes.ts'
import { useLiveState } from '../../live/context.ts'
import { counted, whole } from '../../parts/format.ts'
import { Icon } from '../../parts/icon.tsx'
import { Ago } from '../../parts/time.tsx'
import { routeTo } from '../../router/route.ts'
import { totalCounts } from '../../shell/overview-context.ts'

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

/** Without a connection the numbers are old, and nothing else on this page would say so. */
function Stale({ atMs }: { readonly atMs: number }) {
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

/** What needs attention, above all numbers; empty when nothing does. */
export function Callouts({ overview }: { readonly overview: Overview }) {
  const session = useSession()
  const { dead, ready } = totalCounts(overview)
  const { alertsFiring, workers, paused } = overview
  return (
    <div class="callouts">
      <Stale atMs={overview.atMs} />
      {alertsFiring > 0 && (
        <a class="notice tone-bad" href={routeTo('alerts')}>
          <Icon name="alerts" />
          <span>
            <strong>{counted(alertsFiring, 'alert')} firing.</strong> See what is wrong and since when.
          </span>
        </a>
      )}
      {dead > 0 && hasFacet(session, 'deadLetters') && (
        <a class="notice tone-bad" href={routeTo('dead-letters')}>
          <Icon name="dead-letters" />
          <span>
            <strong>{counted(dead, 'dead letter')}.</strong> These jobs failed for good. Read why, fix and replay them.
          </span>
        </a>
      )}
      {workers === 0 && ready > 0 && (
        <p class="notice tone-warn">
          <Icon name="warn" />
          <span>
            <strong>{whole(ready)} ready, and no worker.</strong> Start one: <code>millrace work jobs.ts</code>
          </span>
        </p>
      )}
      {paused.length > 0 && (
        <a class="notice tone-wait" href={routeTo('queues')}>
          <Icon name="pause" />
          <span>
            <strong>Paused: {paused.join(', ')}.</strong> Jobs of {paused.length === 1 ? 'this type' : 'these types'}{' '}
            wait until resumed.
          </span>
        </a>
      )}
    </div>
  )
}
