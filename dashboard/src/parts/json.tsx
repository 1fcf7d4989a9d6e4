import type { ComponentChildren } from 'preact'
import { useMemo, useState } from 'preact/hooks'
import { CopyButton } from './id.tsx'

const REDACTED = '[redacted]'
const SHOWN_SIGNS = 20_000
/** Strings, with the colon if they are keys, then words and numbers. */
const TOKEN = /("(?:[^"\\]|\\.)*")(\s*:)?|\b(?:true|false|null)\b|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g

export function pretty(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value, null, 2) ?? 'nothing')
}

/** Coloured JSON. Everything is text: a payload can never become markup. */
export function JsonView({ value, what }: { readonly value: unknown; readonly what: string }) {
  const [isWhole, setWhole] = useState(false)
  const text = pretty(value)
  const isText = typeof value === 'string'
  const start = text.slice(0, SHOWN_SIGNS)
  // A megabyte has tens of thousands of parts: colouring all of them would stop the page for seconds.
  const begins = useMemo(() => (isText ? start : coloured(start)), [start, isText])
  const rest = text.slice(SHOWN_SIGNS)
  return (
    <div class="json-frame">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, and keyboard users need to reach it */}
      <section class="json" tabIndex={0} aria-label={what}>
        <pre>
          <code>
            {begins}
            {isWhole && rest}
          </code>
        </pre>
      </section>
      <CopyButton text={text} what={what} />
      {!isWhole && rest !== '' && (
        <button type="button" class="button small" onClick={() => setWhole(true)}>
          Show all {Math.round(text.length / 1_000)} KB
        </button>
      )}
    </div>
  )
}

function coloured(text: string): ComponentChildren {
  const parts: ComponentChildren[] = []
  let at = 0
  for (const match of text.matchAll(TOKEN)) {
    const [token, string, colon] = match
    parts.push(text.slice(at, match.index))
    parts.push(part(token, string, colon, match.index))
    at = match.index + token.length
  }
  parts.push(text.slice(at))
  return parts
}

function part(token: string, string: string | undefined, colon: string | undefined, key: number): ComponentChildren {
  if (string === undefined) {
    return (
      <span key={key} class="json-plain">
        {token}
      </span>
    )
  }
  if (colon !== undefined) {
    return (
      <span key={key} class="json-name">
        {token}
      </span>
    )
  }
  if (string === JSON.stringify(REDACTED)) {
    return (
      <mark key={key} class="redacted" title="Hidden: the job's definition marks this as sensitive.">
        redacted
      </mark>
    )
  }
  return (
    <span key={key} class="json-string">
      {token}
    </span>
  )
}
