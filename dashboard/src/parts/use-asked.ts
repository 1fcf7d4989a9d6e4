import { useState } from 'preact/hooks'

/** What the page asks about in a dialog, null without one. `ends` are the two ends of the dialog; what was done reloads the page. */
export function useAsked<Asked>(reload: () => Promise<void>) {
  const [asked, ask] = useState<Asked | null>(null)
  const onClose = (): void => ask(null)
  const onDone = (): void => {
    ask(null)
    void reload()
  }
  return { asked, ask, ends: { onClose, onDone } }
}
