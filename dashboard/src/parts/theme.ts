import { useEffect, useState } from 'preact/hooks'

/** `system` follows the operating system. */
export type Theme = 'system' | 'light' | 'dark'

const NAME = 'millrace-theme'
const CHANGED = 'millrace-theme-changed'

export function readTheme(): Theme {
  try {
    const kept = localStorage.getItem(NAME)
    return kept === 'light' || kept === 'dark' ? kept : 'system'
  } catch {
    return 'system'
  }
}

export function applyTheme(theme: Theme): void {
  if (theme === 'system') document.documentElement.removeAttribute('data-theme')
  else document.documentElement.setAttribute('data-theme', theme)
  try {
    localStorage.setItem(NAME, theme)
  } catch {
    // Storage may be forbidden; the choice then lasts as long as the page.
  }
  dispatchEvent(new Event(CHANGED))
}

/** Changes with the colours, for canvases, which are painted and not styled. */
export function usePaint(): number {
  const [turn, setTurn] = useState(0)
  useEffect(() => {
    const onChange = (): void => setTurn((last) => last + 1)
    const system = matchMedia('(prefers-color-scheme: dark)')
    system.addEventListener('change', onChange)
    addEventListener(CHANGED, onChange)
    return () => {
      system.removeEventListener('change', onChange)
      removeEventListener(CHANGED, onChange)
    }
  }, [])
  return turn
}
