import type { Session } from '../api/shapes.ts'
import type { IconName } from '../parts/icon.tsx'
import { routeTo } from '../router/route.ts'
import type { Place } from './navigation.ts'

/** A line of the palette: a place to go to. */
export interface Command {
  readonly title: string
  /** What kind of place it is. */
  readonly kind: string
  readonly icon: IconName
  readonly address: string
}

const SHOWN_MAX = 12

interface Known {
  readonly session: Session
  readonly places: readonly Place[]
  readonly types: readonly string[]
}

/**
 * What fits the words: pages and types that contain all of them, those that begin with the first word on top, and then
 * what any text can mean.
 */
export function commandsFor(text: string, { session, places, types }: Known): readonly Command[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean)
  const canList = session.facets.inspection === true
  const named: readonly Command[] = [
    ...places.map(({ title, icon, page }) => ({ title, kind: 'Page', icon, address: routeTo(page) })),
    ...types.map(ofType),
  ]
  const [first = ''] = words
  const isFitting = ({ title }: Command): boolean => words.every((word) => title.toLowerCase().includes(word))
  const rank = ({ title }: Command): number => (title.toLowerCase().startsWith(first) ? 0 : 1)
  const fitting = named.filter(isFitting).sort((one, other) => rank(one) - rank(other))
  return [...fitting.slice(0, SHOWN_MAX), ...(canList ? anyText(text.trim()) : [])]
}

function ofType(type: string): Command {
  return { title: type, kind: 'Type', icon: 'queues', address: routeTo('queues', type) }
}

function anyText(text: string): readonly Command[] {
  if (text === '') return []
  const search = {
    title: text,
    kind: 'Search jobs for',
    icon: 'search' as const,
    address: routeTo('jobs', null, { search: text }),
  }
  if (/\s/.test(text)) return [search]
  return [search, { title: text, kind: 'Open the job', icon: 'jobs', address: routeTo('jobs', text) }]
}
