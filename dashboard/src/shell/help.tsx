import { Dialog } from '../parts/dialog.tsx'
import type { Place } from './navigation.ts'

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
        <div>
          <dt>
            <kbd>/</kbd>
          </dt>
          <dd>Search jobs</dd>
        </div>
        <div>
          <dt>
            <kbd>?</kbd>
          </dt>
          <dd>These keys</dd>
        </div>
        <div>
          <dt>
            <kbd>Esc</kbd>
          </dt>
          <dd>Close a dialog</dd>
        </div>
      </dl>
    </Dialog>
  )
}
