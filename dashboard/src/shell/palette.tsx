import { useEffect, useRef, useState } from 'preact/hooks'
import { useSession } from '../api/context.ts'
import { Dialog } from '../parts/dialog.tsx'
import { Icon } from '../parts/icon.tsx'
import { goTo } from '../router/use-route.ts'
import { type Command, commandsFor } from './commands.ts'
import type { Place } from './navigation.ts'
import { useOverview } from './overview-context.ts'

/** Goes to a page, a type, a job or a search by a few letters. */
export function Palette({ places, onClose }: { readonly places: readonly Place[]; readonly onClose: () => void }) {
  const session = useSession()
  const types = Object.keys(useOverview()?.counts ?? {})
  // What was typed and chosen last: who types quickly presses Enter before it is drawn.
  const typed = useRef({ text: '', at: 0 })
  const [{ text, at }, draw] = useState(typed.current)
  const change = (next: { readonly text: string; readonly at: number }): void => {
    typed.current = next
    draw(next)
  }
  const field = useRef<HTMLInputElement>(null)
  // The dialog gives the focus to its first button.
  useEffect(() => field.current?.focus(), [])
  const known = { session, places, types }
  const commands = commandsFor(text, known)
  const open = (command: Command | undefined): void => {
    if (command === undefined) return
    onClose()
    goTo(command.address)
  }
  const onKeyDown = (event: KeyboardEvent): void => {
    const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0
    if (step === 0 && event.key !== 'Enter') return
    event.preventDefault()
    const last = typed.current
    const fitting = commandsFor(last.text, known)
    if (step === 0) open(fitting[last.at])
    else change({ ...last, at: (last.at + step + fitting.length) % Math.max(1, fitting.length) })
  }
  return (
    <Dialog title="Go to" onClose={onClose}>
      <input
        ref={field}
        class="palette-field"
        type="text"
        aria-label="Page, type, job or search"
        autocomplete="off"
        spellcheck={false}
        placeholder="Page, type, id or any text"
        value={text}
        onInput={(event) => change({ text: event.currentTarget.value, at: 0 })}
        onKeyDown={onKeyDown}
      />
      <ul class="palette">
        {commands.map((command, index) => (
          <li key={`${command.kind} ${command.address}`}>
            <a class="plain" href={command.address} aria-current={index === at ? 'true' : undefined} onClick={onClose}>
              <Icon name={command.icon} />
              <span class="cut">{command.title}</span>
              <span class="quiet">{command.kind}</span>
            </a>
          </li>
        ))}
      </ul>
      {commands.length === 0 && <p class="quiet">Nothing fits.</p>}
    </Dialog>
  )
}
