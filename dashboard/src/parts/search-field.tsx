import { useEffect, useId, useRef, useState } from 'preact/hooks'
import { useOverview } from '../shell/overview-context.ts'
import { whole } from './format.ts'
import { completions } from './search-words.ts'
import { Exact } from './time.tsx'

interface SearchFieldProps {
  /** What is searched, as a label. */
  readonly label: string
  readonly value: string
  readonly takesFocus?: boolean
  readonly search: (text: string) => void
}

const SETTLED_MS = 300
const LENGTH_MAX = 500

/** Searches after a pause in typing. */
export function SearchField({ label, value, takesFocus = false, search }: SearchFieldProps) {
  const [text, setText] = useState(value)
  const field = useRef<HTMLInputElement>(null)
  const newest = useRef(search)
  newest.current = search
  const listId = useId()
  const types = Object.keys(useOverview()?.counts ?? {})
  useEffect(() => setText(value), [value])
  useEffect(() => {
    if (takesFocus) field.current?.focus()
  }, [takesFocus])
  useEffect(() => {
    if (text.trim() === value) return
    const timer = setTimeout(() => newest.current(text.trim()), SETTLED_MS)
    return () => clearTimeout(timer)
  }, [text, value])
  return (
    <>
      <input
        ref={field}
        type="search"
        aria-label={label}
        placeholder="type:mail error:ECONNREFUSED since:1h, or words  ( / )"
        list={listId}
        autocomplete="off"
        spellcheck={false}
        value={text}
        maxLength={LENGTH_MAX}
        onInput={(event) => setText(event.currentTarget.value)}
      />
      <datalist id={listId}>
        {completions(text, types).map((option) => (
          <option key={option} value={option} />
        ))}
      </datalist>
    </>
  )
}

interface LookedAtProps {
  readonly searched: { readonly looked: number; readonly reachedMs: number | null } | null | undefined
  readonly next: string | null
  readonly onward: (next: string) => void
}

/** How far a search has looked for this page, while there is more to look at. */
export function LookedAt({ searched, next, onward }: LookedAtProps) {
  if (searched === null || searched === undefined || next === null) return null
  return (
    <p class="looked" role="status">
      <span class="quiet">
        Looked at {whole(searched.looked)}
        {searched.reachedMs !== null && (
          <>
            {' back to '}
            <Exact atMs={searched.reachedMs} />
          </>
        )}
      </span>
      <button type="button" class="button small" onClick={() => onward(next)}>
        Look further
      </button>
    </p>
  )
}
