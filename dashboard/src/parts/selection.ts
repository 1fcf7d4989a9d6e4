/** The selection in a list: rows by id, or everything that matches the filter. */
export interface Selected {
  readonly ids: ReadonlySet<string>
  /** Everything that matches the filter, also on pages not loaded. */
  readonly all: boolean
}

export const NOTHING: Selected = { ids: new Set(), all: false }

export function toggle(selected: Selected, id: string): Selected {
  const ids = new Set(selected.ids)
  if (!ids.delete(id)) ids.add(id)
  return { ids, all: false }
}

/** Selects all rows of the page from one to another, both included, in either direction. */
export function selectRange(selected: Selected, page: readonly string[], from: string, to: string): Selected {
  const [one, other] = [page.indexOf(from), page.indexOf(to)]
  if (one === -1 || other === -1) return toggle(selected, to)
  const range = page.slice(Math.min(one, other), Math.max(one, other) + 1)
  return { ids: new Set([...selected.ids, ...range]), all: false }
}

/** Selects every row of the page, or deselects them if all are selected. Other pages stay as they are. */
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
