import type { Facet, Session } from '../api/shapes.ts'
import type { IconName } from '../parts/icon.tsx'
import type { Page } from '../router/route.ts'

export interface Place {
  readonly page: Page
  readonly title: string
  readonly icon: IconName & Page
  /** Pressed after `g`. */
  readonly key: string
  /** The facet that the page needs. */
  readonly needs: Facet | null
  /** What the engine lacks without it, as the end of a sentence. */
  readonly lacks: string
}

export const NAVIGATION: readonly Place[] = [
  { page: 'overview', title: 'Overview', icon: 'overview', key: 'o', needs: null, lacks: '' },
  { page: 'jobs', title: 'Jobs', icon: 'jobs', key: 'j', needs: 'inspection', lacks: 'cannot list single jobs' },
  {
    page: 'dead-letters',
    title: 'Dead letters',
    icon: 'dead-letters',
    key: 'd',
    needs: 'deadLetters',
    lacks: 'keeps no dead letters that could be put back',
  },
  { page: 'queues', title: 'Queues', icon: 'queues', key: 'q', needs: null, lacks: '' },
  {
    page: 'workers',
    title: 'Workers',
    icon: 'workers',
    key: 'w',
    needs: 'presence',
    lacks: 'does not know which workers live',
  },
  {
    page: 'schedules',
    title: 'Schedules',
    icon: 'schedules',
    key: 's',
    needs: 'schedules',
    lacks: 'keeps no schedules',
  },
  { page: 'topics', title: 'Topics', icon: 'topics', key: 't', needs: 'topics', lacks: 'has no topics' },
  { page: 'tables', title: 'Job tables', icon: 'tables', key: 'b', needs: 'tables', lacks: 'has no job tables' },
  { page: 'webhooks', title: 'Webhooks', icon: 'webhooks', key: 'h', needs: 'webhooks', lacks: 'has no webhooks' },
  { page: 'alerts', title: 'Alerts', icon: 'alerts', key: 'a', needs: null, lacks: '' },
  { page: 'audit', title: 'Audit', icon: 'audit', key: 'u', needs: 'deadLetters', lacks: 'keeps no audit' },
]

export function placesFor(session: Session): readonly Place[] {
  return NAVIGATION.filter(({ needs }) => needs === null || session.facets[needs] === true)
}
