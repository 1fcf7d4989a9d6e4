import { ActButton } from '../../parts/fields.tsx'
import { isNothing, NOTHING, type Selected } from '../../parts/selection.ts'
import type { BulkKind } from './bulk-dialog.tsx'
import { type LetterFilter, selectionOf, selectionText } from './selection-words.ts'

interface BulkBarProps {
  readonly selected: Selected
  readonly filter: LetterFilter
  /** Whether there are more than on the page. */
  readonly hasMore: boolean
  readonly onSelect: (selected: Selected) => void
  readonly act: (kind: BulkKind) => void
}

/** Appears at the bottom when something is selected. */
export function BulkBar({ selected, filter, hasMore, onSelect, act }: BulkBarProps) {
  if (isNothing(selected)) return null
  const text = selectionText(selectionOf(selected, filter))
  return (
    <section class="bulk-bar" aria-label="Selection">
      <p>
        <strong>{text} selected</strong>{' '}
        {hasMore && !selected.all && (
          <button type="button" class="link" onClick={() => onSelect({ ids: new Set(), all: true })}>
            Select {selectionText(selectionOf({ ids: new Set(), all: true }, filter))}
          </button>
        )}
      </p>
      <div class="actions">
        <ActButton icon="again" needs="operator" look="primary" onClick={() => act('replay')}>
          Replay…
        </ActButton>
        <ActButton icon="bin" needs="operator" onClick={() => act('discard')}>
          Discard…
        </ActButton>
        <ActButton needs="admin" look="danger" onClick={() => act('purge')}>
          Purge…
        </ActButton>
        <button type="button" class="button" onClick={() => onSelect(NOTHING)}>
          Clear
        </button>
      </div>
    </section>
  )
}
