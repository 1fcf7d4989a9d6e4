import { Dialog } from '../parts/dialog.tsx'
import type { Place } from './navigation.ts'

const OTHER_KEYS: readonly { readonly keys: readonly string[]; readonly what: string }[] = [
  { keys: ['Ctrl', 'k'], what: 'Go to a page, type or job' },
  { keys: ['/'], what: 'Search jobs' },
  { keys: ['j', 'k'], what: 'Next and previous row' },
  { keys: ['Enter'], what: 'Open the row' },
  { keys: ['x'], what: 'Select the row; with Shift, all rows up to it' },
  { keys: ['?'], what: 'These keys' },
  { keys: ['Esc'], what: 'Close a dialog' },
]

export function Help({ places, onClose }: { readonly places: readonly Place[]; readonly onClose: () => void }) {
  return (
    <Dialog title="Keyboard" onClose={onClose}>
      <dl class="keys">
        {places.map(({ key, title }) => (
          <div key={key}>
            <dt>
              <kbd>g</kbd> <kbd>{key}</kbd>
            </dt>
            <dd>{title}</dd>
          </div>
        ))}
        {OTHER_KEYS.map(({ keys, what }) => (
          <div key={what}>
            <dt>
              {keys.map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  )
}
