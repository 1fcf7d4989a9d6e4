/** What the audit knows about an edited payload. */
import type { AuditEntry, JobEvent } from '../api/shapes.ts'

export interface EditedPart {
  /** Such as `items.0.price`; empty for the whole payload. */
  readonly path: string
  /** Undefined: absent, or not shown because it may be secret. */
  readonly before: unknown
  readonly after: unknown
  /** The sides that are too long to be kept in the audit. */
  readonly long: readonly unknown[]
}

export interface PayloadEdit {
  readonly parts: readonly EditedPart[]
  /** How many more parts changed than `parts` has. */
  readonly unnamed: number
}

type Facts = Readonly<Record<string, unknown>>

/** Null for an act that left the payload alone. */
export function editOf({ before, after }: Pick<AuditEntry, 'before' | 'after'>): PayloadEdit | null {
  const noted = record(after?.edit)
  if (noted !== null) return fromNote(noted)
  // Entries of earlier versions have both payloads.
  if (after === null || before.payload === undefined || after.payload === undefined) return null
  const parts: EditedPart[] = []
  compare('', before.payload, after.payload, parts)
  return { parts, unnamed: 0 }
}

/**
 * The entries that changed the payload, by the replay of the history that they belong to. An engine writes both with one
 * time; on others the nearest is meant. An entry that is no longer in the history's window belongs to none.
 */
export function editsByEvent(
  history: readonly JobEvent[],
  audit: readonly AuditEntry[],
): ReadonlyMap<JobEvent, AuditEntry> {
  const replays = history.filter(({ name, atMs }) => name === 'replayed' && atMs !== null)
  const found = new Map<JobEvent, AuditEntry>()
  for (const entry of audit) {
    if (editOf(entry) === null) continue
    const away = ({ atMs }: JobEvent): number => Math.abs((atMs ?? 0) - entry.atMs)
    const [nearest] = [...replays].sort((a, b) => away(a) - away(b))
    if (nearest !== undefined && away(nearest) <= SAME_ACT_MS) found.set(nearest, entry)
  }
  return found
}

const SAME_ACT_MS = 5_000

function fromNote({ changed, unnamed }: Facts): PayloadEdit {
  const parts = (Array.isArray(changed) ? changed : []).flatMap((one: unknown) => {
    const { path, before, after, long } = record(one) ?? {}
    return typeof path === 'string'
      ? [{ path: dotted(path), before, after, long: Array.isArray(long) ? long : [] }]
      : []
  })
  return { parts, unnamed: typeof unnamed === 'number' ? unnamed : 0 }
}

/** A JSON pointer as people write it. */
function dotted(pointer: string): string {
  const names = pointer.split('/').slice(1)
  return names.map((name) => name.replaceAll('~1', '/').replaceAll('~0', '~')).join('.')
}

function compare(path: string, before: unknown, after: unknown, found: EditedPart[]): void {
  if (JSON.stringify(before) === JSON.stringify(after)) return
  const [one, other] = [record(before), record(after)]
  if (one === null || other === null || Array.isArray(before) !== Array.isArray(after)) {
    found.push({ path, before, after, long: [] })
    return
  }
  for (const name of new Set([...Object.keys(one), ...Object.keys(other)])) {
    compare(path === '' ? name : `${path}.${name}`, one[name], other[name], found)
  }
}

function record(value: unknown): Facts | null {
  return typeof value === 'object' && value !== null ? { ...value } : null
}
