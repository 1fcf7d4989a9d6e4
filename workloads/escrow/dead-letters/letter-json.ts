/** Addresses, letters and audit entries as plain JSON; times are ISO-8601. */
import type { Actor } from '../../../src/engine/dead-letters.ts'
import type { AuditedAct, DlqAction } from '../../../src/engines/kafka/dead-letters/audit.ts'
import { jobIdOf } from '../../../src/engines/kafka/dead-letters/letter.ts'
import type { LetterState } from '../../../src/engines/kafka/dead-letters/states.ts'
import type { FoundLetter } from '../../../src/engines/kafka/dead-letters.ts'
import type { Envelope, LetterAddress } from '../../../src/engines/kafka/index.ts'
import type { Coordinates } from '../../../src/engines/kafka/record.ts'
import { OptionError } from '../../../src/errors.ts'
import { toIso } from '../../../src/time/iso.ts'

export interface AddressJson {
  /** With `.dlq` or without. */
  readonly topic: string
  /** Required where several partitions have the offset. */
  readonly partition?: number
  readonly offset: number | string
}

/** Where a letter stands. */
export interface PlaceJson {
  readonly topic: string
  readonly partition: number
  readonly offset: number
}

export interface LetterJson extends PlaceJson {
  readonly id: string
  readonly jobId: string
  readonly state: LetterState
  /** When and by whom it came into that state; null while it is pending. */
  readonly stateSince: string | null
  readonly stateBy: Actor | null
  readonly deadAt: string
  readonly envelope: Envelope
}

export interface DlqAuditJson {
  readonly seq: number
  readonly at: string
  readonly action: DlqAction
  readonly who: string
  readonly reason: string
  readonly jobId: string
  readonly group: string
  /** The topic of jobs. */
  readonly topic: string
  /** Null for an act that concerns no letter. */
  readonly letter: (PlaceJson & { readonly id: string }) | null
}

export function letterJson({ letter, state }: Pick<FoundLetter, 'letter' | 'state'>): LetterJson {
  return {
    ...placeJson(letter.at),
    id: letter.id,
    jobId: jobIdOf(letter),
    state: state.state,
    stateSince: state.sinceMs === null ? null : toIso(state.sinceMs),
    stateBy: state.by,
    deadAt: toIso(letter.deadAtMs),
    envelope: letter.envelope,
  }
}

export function auditJson({ seq, atMs, action, by, jobId, group, topic, letter, at }: AuditedAct): DlqAuditJson {
  return {
    ...{ seq, at: toIso(atMs), action, ...by, jobId, group, topic },
    letter: letter === null || at === null ? null : { id: letter, ...placeJson(at) },
  }
}

function placeJson({ topic, partition, offset }: Coordinates): PlaceJson {
  return { topic, partition, offset: Number(offset) }
}

export function addressOf({ topic, partition, offset }: AddressJson): LetterAddress {
  return {
    topic,
    offset: offsetOf(offset),
    ...(partition !== undefined && { partition: wholeOf('partition', partition) }),
  }
}

export function wholeOf(name: string, value: number): number {
  if (Number.isSafeInteger(value) && value >= 0) return value
  throw new OptionError(`'${name}' is ${value}; give a whole number from 0`)
}

export function offsetOf(offset: number | string): bigint {
  if (/^\d{1,19}$/.test(String(offset))) return BigInt(offset)
  throw new OptionError(`'offset' is ${offset}; give a whole number from 0`)
}
