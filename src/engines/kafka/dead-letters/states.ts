/**
 * States of dead letters. A log cannot change or delete one record, so a letter is pending until a record in a compacted
 * topic says otherwise. Two who act on one letter each write a claim under a key of its own, and the first in the log
 * has it: no claim can overwrite another's outcome, also after the topic was compacted. The topic has one partition.
 */
import type { Actor } from '../../../engine/dead-letters.ts'
import type { Coordinates } from '../record.ts'

export const LETTER_STATES = ['pending', 'claimed', 'replayed', 'discarded', 'removed'] as const
export type LetterState = (typeof LETTER_STATES)[number]
/** `pending`: a discard was undone. */
export type Resolution = Exclude<LetterState, 'claimed'>

/** A record of the states' topic; `value` null removes. */
export interface StateRecord {
  readonly key: string
  readonly value: Claim | Resolved | null
}

export interface Claim {
  readonly kind: 'claim'
  readonly letter: string
  readonly claim: string
  readonly atMs: number
  readonly by: Actor
}

export interface Resolved {
  readonly kind: 'resolved'
  readonly letter: string
  readonly state: Resolution
  readonly at: Pick<Coordinates, 'topic' | 'partition'> & { readonly offset: string }
  readonly atMs: number
  readonly by: Actor
}

export interface StateView {
  readonly state: LetterState
  /** When it came into that state; null while it is pending. */
  readonly sinceMs: number | null
  readonly by: Actor | null
  /** The claim that holds it: a process acts on it now, or died while acting. */
  readonly claim: string | null
}

/** Neither replayed, discarded nor removed. */
export function isOpen({ state }: StateView): boolean {
  return state === 'pending' || state === 'claimed'
}

const PENDING: StateView = Object.freeze({ state: 'pending', sinceMs: null, by: null, claim: null })

export function claimRecord(claim: Omit<Claim, 'kind'>): StateRecord {
  return { key: claimKey(claim.letter, claim.claim), value: { kind: 'claim', ...claim } }
}

/** Gives up a claim. */
export function releaseRecord(letter: string, claim: string): StateRecord {
  return { key: claimKey(letter, claim), value: null }
}

export function resolvedRecord(resolved: Omit<Resolved, 'kind'>): StateRecord {
  return { key: `state ${resolved.letter}`, value: { kind: 'resolved', ...resolved } }
}

function claimKey(letter: string, claim: string): string {
  return `claim ${claim} ${letter}`
}

/** What the records of the states' topic, read in their order, say. */
export class StateBook {
  readonly #resolved = new Map<string, Resolved>()
  /** By letter, the first one first. */
  readonly #claims = new Map<string, Map<string, Claim>>()

  constructor(records: Iterable<StateRecord> = []) {
    for (const record of records) this.apply(record)
  }

  apply({ key, value }: StateRecord): void {
    if (value === null) {
      this.#remove(key)
      return
    }
    switch (value.kind) {
      case 'claim': {
        const claims = this.#claims.get(value.letter) ?? new Map<string, Claim>()
        // Said again it keeps its place.
        if (!claims.has(value.claim)) claims.set(value.claim, value)
        this.#claims.set(value.letter, claims)
        return
      }
      case 'resolved':
        this.#claims.delete(value.letter)
        this.#resolve(value)
        return
      default:
        value satisfies never
    }
  }

  /** What was replayed or removed stays so: a slower operator does not discard it. */
  #resolve(resolved: Resolved): void {
    const { letter, state } = resolved
    const before = this.#resolved.get(letter)?.state
    if (before === 'replayed' || before === 'removed') return
    if (state === 'pending') this.#resolved.delete(letter)
    else this.#resolved.set(letter, resolved)
  }

  #remove(key: string): void {
    const [, claim, letter = ''] = /^claim (\S+) (.*)$/s.exec(key) ?? []
    if (claim === undefined) {
      const [, forgotten = ''] = /^state (.*)$/s.exec(key) ?? []
      this.#resolved.delete(forgotten)
      return
    }
    const claims = this.#claims.get(letter)
    claims?.delete(claim)
    if (claims?.size === 0) this.#claims.delete(letter)
  }

  of(letter: string): StateView {
    const resolved = this.#resolved.get(letter)
    const [first] = this.#claims.get(letter)?.values() ?? []
    const claim = first?.claim ?? null
    if (resolved !== undefined) return { state: resolved.state, sinceMs: resolved.atMs, by: resolved.by, claim }
    if (first === undefined) return PENDING
    return { state: 'claimed', sinceMs: first.atMs, by: first.by, claim }
  }

  /** Whether this claim is the first one on a letter that still is in one of these states. */
  isHeld(letter: string, claim: string, from: readonly LetterState[]): boolean {
    const { state, claim: holder } = this.of(letter)
    return holder === claim && from.includes(state === 'claimed' ? 'pending' : state)
  }
}

/** How a state stands in its topic: JSON with snake_case names. */
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

export function byOf(value: unknown): Actor | null {
  const { who, reason } = asFields(value) ?? {}
  return typeof who === 'string' && typeof reason === 'string' ? { who, reason } : null
}

export function atOf(value: unknown): Resolved['at'] | null {
  const { topic, partition, offset } = asFields(value) ?? {}
  if (typeof topic !== 'string' || typeof partition !== 'number' || typeof offset !== 'string') return null
  return { topic, partition, offset }
}
