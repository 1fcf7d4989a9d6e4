import type { Facet } from './contract/route.ts'
import type { Parts } from './parts.ts'

export interface FacetOf {
  isThere(parts: Parts): boolean
  /** Ends the sentence «the … engine» where it is not there. */
  readonly limit: string
}

/** What routes may need, and where it comes from. */
export const FACETS: Readonly<Record<Facet, FacetOf>> = {
  inspection: { isThere: ({ mill }) => mill.engine.inspector !== undefined, limit: 'cannot look up single jobs' },
  cancellation: { isThere: ({ mill }) => mill.engine.controls !== undefined, limit: 'cannot cancel a job' },
  deadLetters: { isThere: ({ desk }) => desk !== null, limit: 'keeps no dead letters' },
  schedules: { isThere: ({ mill }) => mill.engine.schedules !== undefined, limit: 'keeps no schedules' },
  presence: {
    isThere: ({ mill }) => mill.engine.presence !== undefined,
    limit: 'does not know which workers there are',
  },
  pausing: { isThere: ({ mill }) => mill.engine.pauses !== undefined, limit: 'cannot pause a type' },
  topics: { isThere: ({ topics }) => topics !== null, limit: 'has no topics' },
}

export function facetsOf(parts: Parts): Readonly<Record<Facet, boolean>> {
  const { inspection, cancellation, deadLetters, schedules, presence, pausing, topics } = FACETS
  return {
    inspection: inspection.isThere(parts),
    cancellation: cancellation.isThere(parts),
    deadLetters: deadLetters.isThere(parts),
    schedules: schedules.isThere(parts),
    presence: presence.isThere(parts),
    pausing: pausing.isThere(parts),
    topics: topics.isThere(parts),
  }
}
