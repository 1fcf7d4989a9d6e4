import { useEffect, useRef, useState } from 'preact/hooks'
import { useApi } from '../../api/context.ts'
import type { Answer, JobSummary, Routes } from '../../api/shapes.ts'
import { type Loaded, useAnswer } from '../../api/use-answer.ts'
import { useFresh, useStream } from '../../live/context.ts'
import type { Trail } from '../../parts/pages.tsx'
import type { JobFilter } from './filters.tsx'
import { mergeJobs } from './merge.ts'

/** How far a search has looked; null without one. */
export type Searched = Answer<Routes['listJobs']>['searched']

export interface ShownJobs {
  readonly loaded: Loaded<Answer<Routes['listJobs']>>
  /** Null until the first answer. */
  readonly rows: readonly JobSummary[] | null
  /** New jobs that are not shown yet. */
  readonly newer: number
  readonly showNewest: () => void
  /** Another page or filter is loading. */
  readonly isTurning: boolean
}

export const PAGE_ROWS = 30
const LOOKED_UP_MAX = 10

/**
 * The rows of a page. Shown rows change in place, and new ones are only counted, so that nothing moves while it is read.
 */
export function useJobs(filter: JobFilter, trail: Trail): ShownJobs {
  const api = useApi()
  const place = JSON.stringify([filter, trail.cursor])
  const loaded = useAnswer('listJobs', {
    query: { ...filter, limit: PAGE_ROWS, ...(trail.cursor !== undefined && { cursor: trail.cursor }) },
  })
  const [shown, setShown] = useState<{ readonly place: string; readonly rows: readonly JobSummary[] } | null>(null)
  const [newer, setNewer] = useState(0)
  const changed = useRef(new Set<string>())
  const isStale = useRef(true)

  // Another page or filter has other rows.
  useEffect(() => {
    isStale.current = true
  }, [place])

  useEffect(() => {
    const fresh = loaded.value?.items
    if (fresh === undefined || loaded.isLoading) return
    const isFirst = isStale.current || shown === null
    isStale.current = false
    if (isFirst) {
      setNewer(0)
      setShown({ place, rows: fresh })
      return
    }
    const merged = mergeJobs(shown.rows, fresh)
    setNewer(trail.cursor === undefined ? merged.newer : 0)
    setShown({ place, rows: merged.rows })
    const unseen = merged.absent.filter((id) => changed.current.has(id)).slice(0, LOOKED_UP_MAX)
    changed.current.clear()
    void lookUp(unseen)
    // Only a fresh answer changes the rows.
  }, [loaded.value, loaded.isLoading])

  /** Rows that no longer match the filter are still visible, and must be correct. */
  const lookUp = async (ids: readonly string[]): Promise<void> => {
    const answers = await Promise.all(ids.map((id) => api.call('showJob', { params: { id } })))
    const jobs = answers.flatMap((answer) => (answer.ok ? [answer.value.job] : []))
    if (jobs.length === 0) return
    setShown((now) => (now === null ? now : { ...now, rows: mergeJobs(now.rows, jobs).rows }))
  }

  useStream('jobs', ({ ids }) => {
    for (const id of ids) changed.current.add(id)
  })
  useFresh(loaded.reload, { on: ['jobs'], atMostEveryMs: 2_000, everyMs: 10_000 })

  const showNewest = (): void => {
    isStale.current = true
    trail.restart()
    void loaded.reload()
  }
  return { loaded, rows: shown?.rows ?? null, newer, showNewest, isTurning: shown?.place !== place }
}
