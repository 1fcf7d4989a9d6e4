import type { ComponentChildren } from 'preact'
import { useEffect, useId, useRef } from 'preact/hooks'
import { Icon } from './icon.tsx'

interface DialogProps {
  readonly title: string
  readonly onClose: () => void
  readonly children: ComponentChildren
}

/** The browser's modal dialog: it traps the focus, closes on Escape and restores the focus. */
export function Dialog({ title, onClose, children }: DialogProps) {
  const box = useRef<HTMLDialogElement>(null)
  const close = useRef(onClose)
  close.current = onClose
  const titleId = useId()
  useEffect(() => {
    const dialog = box.current
    if (dialog === null) return
    const onClosed = (): void => close.current()
    const onPress = (event: MouseEvent): void => {
      if (event.target === dialog) dialog.close()
    }
    dialog.addEventListener('close', onClosed)
    dialog.addEventListener('mousedown', onPress)
    dialog.showModal()
    return () => {
      dialog.removeEventListener('close', onClosed)
      dialog.removeEventListener('mousedown', onPress)
      dialog.close()
    }
  }, [])
  return (
    <dialog ref={box} class="dialog" aria-labelledby={titleId}>
      <div class="dialog-body">
        <header class="dialog-head">
          <h2 id={titleId}>{title}</h2>
          <button type="button" class="icon-button" aria-label="Close" onClick={() => box.current?.close()}>
            <Icon name="cross" />
          </button>
        </header>
        {children}
      </div>
    </dialog>
  )
}
