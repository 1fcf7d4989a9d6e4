/** How dead letters and audit entries are shown to the outside: plain JSON, times as ISO-8601. */
import type { Actor } from '../../../engine/dead-letters.ts'
import { toIso } from '../../../time/iso.ts'
import type { Coordinates } from '../record.ts'
import type { AuditedAct, DlqAction } from './audit.ts'
import type { Envelope } from './envelope.ts'
import { jobIdOf, type TopicLetter } from './letter.ts'
import type { LetterState, StateView } from './states.ts'

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
  /** Since when it is in that state, and by whom; null while it is pending. */
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
  /** Null for an act that is about no letter. */
  readonly letter: (PlaceJson & { readonly id: string }) | null
}

export function letterJson(letter: TopicLetter, state: StateView): LetterJson {
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
