import type { AuditEntry } from '../api/shapes.ts'
import { Icon } from '../parts/icon.tsx'
import { Ago } from '../parts/time.tsx'
import { isReason } from './audit-words.ts'
import { type EditedPart, editOf } from './payload-edit.ts'

const VALUE_CHARS_MAX = 60

function shown({ long, ...sides }: EditedPart, side: 'before' | 'after'): string {
  if (long.includes(side)) return 'a long value'
  const value = sides[side]
  const text = value === undefined ? 'nothing' : JSON.stringify(value)
  return text.length <= VALUE_CHARS_MAX ? text : `${text.slice(0, VALUE_CHARS_MAX - 1)}…`
}

/** The parts that an act changed; nothing if it left the payload alone. */
export function EditedParts({ entry }: { readonly entry: AuditEntry }) {
  const edit = editOf(entry)
  if (edit === null || edit.parts.length === 0) return null
  return (
    <ul class="edited" aria-label="What was edited">
      {edit.parts.map((part) => (
        <li key={part.path}>
          <Part part={part} />
        </li>
      ))}
      {edit.unnamed > 0 && <li class="quiet">and {edit.unnamed} more</li>}
    </ul>
  )
}

function Part({ part }: { readonly part: EditedPart }) {
  const isHidden = part.before === undefined && part.after === undefined && part.long.length === 0
  return (
    <>
      <code>{part.path === '' ? 'the whole payload' : part.path}</code>{' '}
      {isHidden ? (
        <span class="quiet">changed, values not shown</span>
      ) : (
        <span class="diff">
          <del>{shown(part, 'before')}</del> <ins>{shown(part, 'after')}</ins>
        </span>
      )}
    </>
  )
}

/** Above a payload that is not the one that was enqueued: who edited it, when, why and what. */
export function EditNotice({ audit }: { readonly audit: readonly AuditEntry[] }) {
  const edits = audit.filter((entry) => editOf(entry) !== null)
  // The newest is first.
  const [last] = edits
  if (last === undefined) return null
  return (
    <div class="notice tone-warn">
      <Icon name="warn" />
      <div>
        <strong>Its payload was edited{edits.length > 1 && ` ${edits.length} times, at last`}</strong> by {last.who}{' '}
        <Ago atMs={last.atMs} />
        <p>{isReason(last) ? <>“{last.reason}”</> : <span class="quiet">no reason given</span>}</p>
        <EditedParts entry={last} />
      </div>
    </div>
  )
}
