import { hasFacet, useSession } from '../../api/context.ts'
import type { Overview } from '../../api/shapes.ts'
import { counted, whole } from '../../parts/format.ts'
import { Icon } from '../../parts/icon.tsx'
import { routeTo } from '../../router/route.ts'
import { totalCounts } from '../../shell/overview-context.ts'

/** What needs attention, above all numbers; empty when nothing does. */
export function Callouts({ overview }: { readonly overview: Overview }) {
  const session = useSession()
  const { dead, ready } = totalCounts(overview)
  const { alertsFiring, workers, paused } = overview
  return (
    <div class="callouts">
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
