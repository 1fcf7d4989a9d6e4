import type { AuditEntry, JobEvent } from '../../api/shapes.ts'
import { duration } from '../../parts/format.ts'
import { Icon } from '../../parts/icon.tsx'
import { MaybeAgo } from '../../parts/time.tsx'
import { eventLabel } from '../../parts/words.ts'
import { EditedParts } from '../edited-payload.tsx'
import { editsByEvent } from '../payload-edit.ts'

interface TimelineProps {
  readonly history: readonly JobEvent[]
  readonly audit: readonly AuditEntry[]
}

/** The job's history, oldest first, with the time between events, and what a replay changed in the payload. */
export function Timeline({ history, audit }: TimelineProps) {
  const edits = editsByEvent(history, audit)
  if (history.length === 0) return <p class="quiet">This engine keeps no history of single jobs.</p>
  return (
    <ol class="timeline">
      {history.map((event, index) => (
        <Moment
          key={`${event.atMs} ${event.name} ${index}`}
          event={event}
          before={history[index - 1] ?? null}
          edit={edits.get(event) ?? null}
        />
      ))}
    </ol>
  )
}

/** Events that are shown with their attempt. */
const TRIES = new Set(['started', 'completed', 'failed', 'retried', 'released', 'expired'])

interface MomentProps {
  readonly event: JobEvent
  readonly before: JobEvent | null
  /** The entry of the act, if it changed the payload. */
  readonly edit: AuditEntry | null
}

function Moment({ event, before, edit }: MomentProps) {
  const { text, tone, icon } = eventLabel(event)
  const gapMs = before === null ? 0 : (event.atMs ?? 0) - (before.atMs ?? event.atMs ?? 0)
  return (
    <li class={`moment tone-${tone}`}>
      <span class="moment-sign">
        <Icon name={icon} />
      </span>
      <div>
        <p class="moment-line">
          <strong>{text}</strong>
          {event.attempt > 0 && TRIES.has(event.name) && <span class="quiet">attempt {event.attempt}</span>}
          <span class="moment-time">
            {gapMs > 0 && <span class="quiet figures">+{duration(gapMs)}</span>}{' '}
            <MaybeAgo atMs={event.atMs} otherwise="unreadable" />
          </span>
        </p>
        {detailLines(event).map((line) => (
          <p key={line} class="moment-detail">
            {line}
          </p>
        ))}
        {edit !== null && <EditedParts entry={edit} />}
        {event.worker !== null && event.worker !== before?.worker && <p class="quiet moment-detail">{event.worker}</p>}
      </div>
    </li>
  )
}

/** The details of an event. Unknown fields are shown as they are. */
function detailLines({ detail }: JobEvent): readonly string[] {
  if (detail === null) return []
  const { error, delayMs, durationMs, who, reason, by, ...rest } = detail
  const lines = [
    errorLine(error),
    typeof delayMs === 'number' && delayMs > 0 ? `after ${duration(delayMs)}` : null,
    typeof durationMs === 'number' ? `took ${duration(durationMs)}` : null,
    typeof who === 'string' ? `by ${who}` : null,
    typeof reason === 'string' && reason !== '' ? `“${reason}”` : null,
    typeof by === 'string' ? `by ${by}` : null,
    Object.keys(rest).length > 0 ? JSON.stringify(rest) : null,
  ]
  return lines.filter((line) => line !== null)
}

/** Some engines store the error of an attempt as text. */
function parsed(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'string' ? null : value
  } catch {
    return null
  }
}

function errorLine(error: unknown): string | null {
  if (typeof error === 'string') return errorLine(parsed(error)) ?? error
  if (typeof error !== 'object' || error === null || !('message' in error)) return null
  return typeof error.message === 'string' ? error.message : null
}
