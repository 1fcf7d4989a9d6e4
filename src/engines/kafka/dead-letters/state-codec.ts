import type { By } from '../../../engine/dead-letters.ts'
import { type Claim, LETTER_STATES, type Resolution, type Resolved, type StateRecord } from './states.ts'

/** How a state stands in its topic: JSON with document D's manner of names. */
export function encodeState({ key, value }: StateRecord): { readonly key: Buffer; readonly value: Buffer | null } {
  return { key: Buffer.from(key), value: value === null ? null : Buffer.from(JSON.stringify(value)) }
}

/** Null for what is no state: a foreign record in the topic must not stop the desk. */
export function decodeState(key: Buffer | null, value: Buffer | null): StateRecord | null {
  const name = key?.toString() ?? ''
  if (!/^(?:claim \S+|state) ./s.test(name)) return null
  if (value === null) return { key: name, value: null }
  const read = readValue(value)
  return read === null ? null : { key: name, value: read }
}

export type Fields = Partial<Readonly<Record<string, unknown>>>

function readValue(value: Buffer): Claim | Resolved | null {
  const fields = fieldsOf(value)
  if (fields === null) return null
  const { kind, letter, atMs } = fields
  const by = byOf(fields.by)
  if (typeof letter !== 'string' || typeof atMs !== 'number' || by === null) return null
  if (kind === 'claim') {
    return typeof fields.claim === 'string' ? { kind, letter, claim: fields.claim, atMs, by } : null
  }
  const at = atOf(fields.at)
  const { state } = fields
  if (kind !== 'resolved' || at === null || !isResolution(state)) return null
  return { kind, letter, state, at, atMs, by }
}

function isResolution(state: unknown): state is Resolution {
  return state !== 'claimed' && LETTER_STATES.some((known) => known === state)
}

export function fieldsOf(value: Buffer): Fields | null {
  try {
    return asFields(JSON.parse(value.toString()))
  } catch {
    return null
  }
}

export function asFields(value: unknown): Fields | null {
  return typeof value === 'object' && value !== null ? { ...value } : null
}

export function byOf(value: unknown): By | null {
  const { who, reason } = asFields(value) ?? {}
  return typeof who === 'string' && typeof reason === 'string' ? { who, reason } : null
}

export function atOf(value: unknown): Resolved['at'] | null {
  const { topic, partition, offset } = asFields(value) ?? {}
  if (typeof topic !== 'string' || typeof partition !== 'number' || typeof offset !== 'string') return null
  return { topic, partition, offset }
}
