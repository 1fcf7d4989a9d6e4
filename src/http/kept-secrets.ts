/** Edits of a payload that was shown without its secrets: a placeholder that was left in its place keeps the stored value. */
import { isMillraceError, PayloadError } from '../errors.ts'
import type { JobView } from '../job/job.ts'
import { REDACTED, type Redaction } from '../job/redaction.ts'
import { canonicalJson, isRecord, type JsonRecord, parseOrText } from '../job/stored-json.ts'

type StoredPayload = Pick<JobView, 'type' | 'payload'> & Partial<Pick<JobView, 'options'>>

export interface KeptSecrets {
  readonly payload: unknown
  /** The stored values that took the place of placeholders. */
  readonly secrets: readonly unknown[]
}

/** Placeholders at any other place stay, for `refusePlaceholder`: a secret never moves to a part that is shown. */
export function keepSecrets(redaction: Redaction, stored: StoredPayload, edited: unknown): KeptSecrets {
  const { type, payload: text, options } = stored
  const shownOf = (payload: string): unknown => redaction.payload(type, payload, options?.name ?? type).value
  const filled = fill(edited, shownOf(text), parseOrText(text))
  const secrets: unknown[] = []
  const payload = hiddenOnly({ edited, filled, shown: shownOf(canonicalJson(filled)) }, secrets)
  return { payload, secrets }
}

/** The stored values in the places of their placeholders. */
function fill(part: unknown, shown: unknown, raw: unknown): unknown {
  if (part === REDACTED && shown === REDACTED && raw !== undefined) return raw
  if (Array.isArray(part) && Array.isArray(shown) && Array.isArray(raw)) {
    const from = originsOf(part, shown)
    return part.map((item, index) => fill(item, shown[from[index] ?? -1], raw[from[index] ?? -1]))
  }
  if (!isRecord(part) || !isRecord(shown) || !isRecord(raw)) return part
  return mapped(part, (value, name) => fill(value, own(shown, name), own(raw, name)))
}

interface Filled {
  readonly edited: unknown
  readonly filled: unknown
  /** As pages will show what was filled. */
  readonly shown: unknown
}

/** Without the values that would be shown where they are now, such as in another place of a tuple. Adds the others to `secrets`. */
function hiddenOnly({ edited, filled, shown }: Filled, secrets: unknown[]): unknown {
  if (edited === filled) return filled
  if (edited === REDACTED) {
    if (shown !== REDACTED) return REDACTED
    secrets.push(filled)
    return filled
  }
  const partOf = (value: unknown, name: string): Filled => ({
    edited: own(edited, name),
    filled: value,
    shown: shown === REDACTED ? REDACTED : own(shown, name),
  })
  if (Array.isArray(filled)) return filled.map((item, index) => hiddenOnly(partOf(item, String(index)), secrets))
  return isRecord(filled) ? mapped(filled, (value, name) => hiddenOnly(partOf(value, name), secrets)) : filled
}

/**
 * Where each item was before; undefined for a new one. As long as none was added, removed or moved, it is its position.
 * Otherwise only items that were left alone are known again: alike ones by their order, and none if some of them are gone.
 */
function originsOf(items: readonly unknown[], shown: readonly unknown[]): readonly (number | undefined)[] {
  const [now, then] = [items.map(canonicalJson), shown.map(canonicalJson)]
  const known = new Set(then)
  const isInPlace = (text: string, index: number): boolean => text === then[index] || !known.has(text)
  if (now.length === then.length && now.every(isInPlace)) return [...now.keys()]
  const [placesNow, placesThen] = [placesOf(now), placesOf(then)]
  const found: (number | undefined)[] = now.map(() => undefined)
  for (const [text, places] of placesNow) {
    const before = placesThen.get(text) ?? []
    if (before.length === places.length) for (const [nth, place] of places.entries()) found[place] = before[nth]
  }
  const kept = found.filter((place) => place !== undefined)
  const isInOrder = kept.every((place, index) => index === 0 || place > (kept[index - 1] ?? 0))
  return isInOrder ? found : []
}

function placesOf(texts: readonly string[]): ReadonlyMap<string, readonly number[]> {
  return Map.groupBy(texts.keys(), (index) => texts[index] ?? '')
}

/** Schema libraries may quote the value that does not fit. An error that quotes a kept secret is replaced by one that does not. */
export async function withoutSecrets<Answer>(secrets: readonly unknown[], act: () => Promise<Answer>): Promise<Answer> {
  try {
    return await act()
  } catch (error) {
    if (!isMillraceError(error) || !leavesOf(secrets).some((text) => error.message.includes(text))) throw error
    throw new PayloadError(
      'ERR_PAYLOAD_INVALID',
      `the payload does not fit its schema, and the reason quotes a kept secret, so it is not shown; type new values for '${REDACTED}'`,
    )
  }
}

function leavesOf(value: unknown): readonly string[] {
  if (typeof value === 'object' && value !== null) return Object.values(value).flatMap(leavesOf)
  return value === null || value === '' || typeof value === 'boolean' ? [] : [String(value)]
}

function own(of: unknown, name: string): unknown {
  return typeof of === 'object' && of !== null && Object.hasOwn(of, name) ? Reflect.get(of, name) : undefined
}

function mapped(record: JsonRecord, to: (value: unknown, name: string) => unknown): JsonRecord {
  return Object.fromEntries(Object.entries(record).map(([name, value]) => [name, to(value, name)]))
}
