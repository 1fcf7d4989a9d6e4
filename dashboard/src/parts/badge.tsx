import type { JobSummary } from '../api/shapes.ts'
import { useNow } from './clock.ts'
import { Icon } from './icon.tsx'
import { type Label, stateLabel } from './words.ts'

/** A state as text, colour and icon, so that none of the three is needed alone. */
export function Badge({ text, tone, icon }: Label) {
  return (
    <span class={`badge tone-${tone}`}>
      <Icon name={icon} />
      {text}
    </span>
  )
}

export function StateBadge({ job }: { readonly job: Pick<JobSummary, 'state' | 'runAtMs'> }) {
  return <Badge {...stateLabel(job, useNow())} />
}
