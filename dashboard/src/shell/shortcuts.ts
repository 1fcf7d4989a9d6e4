import { useEffect } from 'preact/hooks'
import { type Page, routeTo } from '../router/route.ts'
import { goTo } from '../router/use-route.ts'
import type { Place } from './navigation.ts'
import { moveRow, tickRow } from './rows.ts'

const TOGETHER_MS = 1_200

/** Whether the focus is in a text field. */
function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement && (target.isContentEditable || /^(?:INPUT|TEXTAREA|SELECT)$/.test(target.tagName))
  )
}

interface Shortcuts {
  readonly places: readonly Place[]
  readonly onHelp: () => void
  readonly onPalette: () => void
}

/**
 * Control-K (on a Mac Command-K) opens the palette, also while typing. The others do nothing while typing: `g` and a letter
 * goes to a page, `/` to the search, `j` and `k` move through the rows, `x` ticks one, `?` shows the keys. None works in a
 * dialog.
 */
export function useShortcuts({ places, onHelp, onPalette }: Shortcuts): void {
  useEffect(() => {
    let pressedG = Number.NEGATIVE_INFINITY
    const onKey = (event: KeyboardEvent): void => {
      if (document.querySelector('dialog[open]') !== null) return
      if (isPaletteKey(event)) {
        event.preventDefault()
        onPalette()
      }
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return
      const page = event.timeStamp - pressedG < TOGETHER_MS ? pageOf(places, event.key) : null
      pressedG = event.key === 'g' ? event.timeStamp : Number.NEGATIVE_INFINITY
      if (page !== null) goTo(routeTo(page))
      else if (event.key === '/') goToSearch(event, places)
      else if (event.key === '?') onHelp()
      else if (event.key === 'j' || event.key === 'k') moveRow(event.key === 'j' ? 1 : -1)
      else if (event.key.toLowerCase() === 'x') tickRow(event.shiftKey)
    }
    addEventListener('keydown', onKey)
    return () => removeEventListener('keydown', onKey)
  }, [places, onHelp, onPalette])
}

function isPaletteKey({ key, ctrlKey, metaKey, altKey, shiftKey }: KeyboardEvent): boolean {
  return key.toLowerCase() === 'k' && ctrlKey !== metaKey && !altKey && !shiftKey
}

function pageOf(places: readonly Place[], key: string): Page | null {
  return places.find((place) => place.key === key)?.page ?? null
}

function goToSearch(event: Event, places: readonly Place[]): void {
  event.preventDefault()
  const field = document.querySelector<HTMLInputElement>('input[type=search]')
  if (field !== null) field.focus()
  else if (places.some(({ page }) => page === 'jobs')) goTo(routeTo('jobs', null, { focus: 'search' }))
}
