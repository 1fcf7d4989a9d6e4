import { useEffect } from 'preact/hooks'
import { type Page, routeTo } from '../router/route.ts'
import { goTo } from '../router/use-route.ts'
import type { Place } from './navigation.ts'

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
}

/** `g` and a letter goes to a page, `/` to the search, `?` shows the keys. Not while typing or in a dialog. */
export function useShortcuts({ places, onHelp }: Shortcuts): void {
  useEffect(() => {
    let pressedG = 0
    const onKey = (event: KeyboardEvent): void => {
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return
      if (document.querySelector('dialog[open]') !== null) return
      const page = event.timeStamp - pressedG < TOGETHER_MS ? pageOf(places, event.key) : null
      pressedG = event.key === 'g' ? event.timeStamp : 0
      if (page !== null) goTo(routeTo(page))
      else if (event.key === '/') goToSearch(event, places)
      else if (event.key === '?') onHelp()
    }
    addEventListener('keydown', onKey)
    return () => removeEventListener('keydown', onKey)
  }, [places, onHelp])
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
