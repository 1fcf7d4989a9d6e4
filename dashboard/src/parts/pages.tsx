import { useState } from 'preact/hooks'

export interface Trail {
  /** The cursor of the page that is shown; undefined on the first. */
  readonly cursor: string | undefined
  readonly page: number
  readonly onward: (next: string) => void
  readonly back: () => void
  readonly restart: () => void
}

/** The cursors of the previous pages, because a cursor leads only forward; another filter starts over. */
export function useTrail(filter: string): Trail {
  const [way, setWay] = useState<{ readonly filter: string; readonly cursors: readonly string[] }>({
    filter,
    cursors: [],
  })
  const cursors = way.filter === filter ? way.cursors : []
  const go = (next: readonly string[]): void => setWay({ filter, cursors: next })
  return {
    cursor: cursors.at(-1),
    page: cursors.length + 1,
    onward: (next) => go([...cursors, next]),
    back: () => go(cursors.slice(0, -1)),
    restart: () => go([]),
  }
}

export function Pagination({ trail, next }: { readonly trail: Trail; readonly next: string | null }) {
  if (trail.page === 1 && next === null) return null
  return (
    <nav class="pagination" aria-label="Pages">
      <button type="button" class="button" disabled={trail.page === 1} onClick={trail.back}>
        ← Newer
      </button>
      <span class="quiet">Page {trail.page}</span>
      <button
        type="button"
        class="button"
        disabled={next === null}
        onClick={() => {
          if (next !== null) trail.onward(next)
        }}
      >
        Older →
      </button>
    </nav>
  )
}
