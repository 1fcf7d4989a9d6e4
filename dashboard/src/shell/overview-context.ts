import { createContext } from 'preact'
import { useContext } from 'preact/hooks'
import type { Overview } from '../api/shapes.ts'

/** The newest overview, shared by the navigation and the pages; null before the first. */
export const OverviewContext = createContext<Overview | null>(null)

export const useOverview = (): Overview | null => useContext(OverviewContext)

export type Counts = Overview['counts'][string]

export function totalCounts(overview: Overview | null): Counts {
  const total = { ready: 0, delayed: 0, inProgress: 0, completed: 0, dead: 0 }
  for (const counts of Object.values(overview?.counts ?? {})) {
    total.ready += counts.ready
    total.delayed += counts.delayed
    total.inProgress += counts.inProgress
    total.completed += counts.completed
    total.dead += counts.dead
  }
  return total
}
