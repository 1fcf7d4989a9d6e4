/** What is ticked in a list: rows by their ids, or everything that the list's filter finds. */
export interface Selected {
  readonly ids: ReadonlySet<string>
  /** Everything the filter finds, also on pages that were never loaded. */
  readonly all: boolean
}

export const NOTHING: Selected = { ids: new Set(), all: false }

export function toggle(selected: Selected, id: string): Selected {
  const ids = new Set(selected.ids)
  if (!ids.delete(id)) ids.add(id)
  return { ids, all: false }
}

/** Ticks every row of the page, or unticks them when all of them are. Rows of other pages stay as they are. */
export function togglePage(selected: Selected, page: readonly string[]): Selected {
  const ids = new Set(selected.ids)
  const isWhole = pageState(selected, page) === 'all'
  for (const id of page) {
    if (isWhole) ids.delete(id)
    else ids.add(id)
  }
  return { ids, all: false }
}

export function pageState({ ids, all }: Selected, page: readonly string[]): 'all' | 'some' | 'none' {
  const count = page.filter((id) => ids.has(id)).length
  if (all || (count > 0 && count === page.length)) return 'all'
  return count > 0 ? 'some' : 'none'
}

export function isSelected({ ids, all }: Selected, id: string): boolean {
  return all || ids.has(id)
}

export function isNothing({ ids, all }: Selected): boolean {
  return !all && ids.size === 0
}
