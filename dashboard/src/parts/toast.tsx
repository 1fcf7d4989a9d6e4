import { type ComponentChildren, createContext } from 'preact'
import { useCallback, useContext, useRef, useState } from 'preact/hooks'
import type { Tone } from './words.ts'

export interface Toast {
  readonly text: string
  readonly tone?: Tone
  /** An action, such as undo. */
  readonly action?: { readonly text: string; readonly run: () => void }
}

const SHORT_MS = 5_000
const LONG_MS = 20_000

const ToastContext = createContext<(toast: Toast) => void>(() => {})

export const useToast = (): ((toast: Toast) => void) => useContext(ToastContext)

/** Says what was done, in a live region. A toast with an action stays longer. */
export function Toasts({ children }: { readonly children: ComponentChildren }) {
  const [toasts, setToasts] = useState<readonly (Toast & { readonly key: number })[]>([])
  const next = useRef(0)
  const drop = useCallback((key: number) => setToasts((all) => all.filter((one) => one.key !== key)), [])
  const show = useCallback(
    (toast: Toast) => {
      next.current += 1
      const key = next.current
      setToasts((all) => [...all.slice(-3), { ...toast, key }])
      setTimeout(() => drop(key), toast.action === undefined ? SHORT_MS : LONG_MS)
    },
    [drop],
  )
  return (
    <ToastContext.Provider value={show}>
      {children}
      <div class="toasts" role="status" aria-live="polite">
        {toasts.map(({ key, text, tone = 'good', action }) => (
          <div key={key} class={`toast tone-${tone}`}>
            <span>{text}</span>
            {action !== undefined && (
              <button
                type="button"
                class="button small"
                onClick={() => {
                  drop(key)
                  action.run()
                }}
              >
                {action.text}
              </button>
            )}
          </div>
        ))}
      </div>
    </ToastContext.Provider>
  )
}
