/** Moving through the rows of a list by keys. The focus is on a row's first link, so Enter opens it as any other link. */

const ROWS = 'main .table tbody tr'

function linkOf(row: Element): HTMLElement | null {
  return row.querySelector<HTMLElement>('a[href]')
}

function focusedRow(rows: readonly Element[]): number {
  return rows.findIndex((row) => row.contains(document.activeElement))
}

/** The next row (1) or the one before (-1); the first one if none has the focus. */
export function moveRow(step: 1 | -1): void {
  const rows = [...document.querySelectorAll(ROWS)].filter((row) => linkOf(row) !== null)
  const at = focusedRow(rows)
  const row = rows[at === -1 ? 0 : Math.min(Math.max(at + step, 0), rows.length - 1)]
  if (row === undefined) return
  linkOf(row)?.focus({ preventScroll: true })
  row.scrollIntoView({ block: 'nearest' })
}

/** Ticks or unticks the row with the focus, if its list has boxes. With shift, up to the row that was ticked last. */
export function tickRow(isRange: boolean): void {
  const rows = [...document.querySelectorAll(ROWS)]
  const box = rows[focusedRow(rows)]?.querySelector('input[type=checkbox]')
  box?.dispatchEvent(new MouseEvent('click', { bubbles: true, cancelable: true, shiftKey: isRange }))
}
