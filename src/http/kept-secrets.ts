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
  const secrets: unknown[] = []
  const keep = (part: unknown, shown: unknown, raw: unknown): unknown => {
    if (part === REDACTED && shown === REDACTED && raw !== undefined) {
      secrets.push(raw)
      return raw
    }
    if (Array.isArray(part) && Array.isArray(shown) && Array.isArray(raw)) {
      return areInPlace(part, shown) ? part.map((item, index) => keep(item, shown[index], raw[index])) : part
    }
    if (!isRecord(part) || !isRecord(shown) || !isRecord(raw)) return part
    const entries = Object.entries(part).map(([name, value]) => [name, keep(value, own(shown, name), own(raw, name))])
    return Object.fromEntries(entries)
  }
  const { type, payload: text, options } = stored
  const payload = keep(edited, redaction.payload(type, text, options?.name ?? type).value, parseOrText(text))
  return { payload, secrets }
}

/** Whether no item was added, removed or moved: a position is all that tells which item a secret belongs to. */
function areInPlace(items: readonly unknown[], shown: readonly unknown[]): boolean {
  if (items.length !== shown.length) return false
  const texts = shown.map(canonicalJson)
  const known = new Set(texts)
  return items.map(canonicalJson).every((text, index) => text === texts[index] || !known.has(text))
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

function own(of: JsonRecord, name: string): unknown {
  return Object.hasOwn(of, name) ? of[name] : undefined
}
