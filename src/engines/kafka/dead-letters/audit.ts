/**
 * What operators did. Entries stand in the topic of the states, each under a key that is never written again: compaction
 * keeps them for ever, and an act is written together with its entry or not at all.
 */
import { randomUUID } from 'node:crypto'
import {
  type Actor,
  AUDIT_ACTIONS,
  type AuditAction,
  auditView,
  type LetterAction,
  type PayloadEdit,
} from '../../../engine/dead-letters.ts'
import type { JobView } from '../../../job/job.ts'
import type { Coordinates } from '../record.ts'
import { type TopicLetter, topicOf, viewOf } from './letter.ts'
import { asFields, atOf, byOf, type Fields, fieldsOf, type StateView } from './states.ts'

/** `release`: a claim was given up. */
export type DlqAction = AuditAction | 'release'

export interface DlqAudit {
  readonly atMs: number
  readonly action: DlqAction
  readonly by: Actor
  /** The topic whose jobs it is about, and the group; empty where it is about none. */
  readonly topic: string
  readonly group: string
  readonly jobId: string
  readonly subject: string | null
  /** The letter, and where it stands. */
  readonly letter: string | null
  readonly at: Coordinates | null
  readonly before: Readonly<Record<string, unknown>>
  readonly after: Readonly<Record<string, unknown>> | null
}

export interface AuditedAct extends DlqAudit {
  /** Grows with every entry. */
  readonly seq: number
}

export interface LetterAct {
  readonly action: LetterAction | 'release'
  readonly by: Actor
  readonly atMs: number
  /** What topics begin with before the type. */
  readonly prefix: string
  readonly edit?: PayloadEdit
}

/** The entry for an act on a letter that was in this state. */
export function entryOf(letter: TopicLetter, state: StateView, act: LetterAct): DlqAudit {
  const { action, by, atMs, prefix, edit } = act
  const before = viewOf(letter, state, prefix)
  const after = viewAfter(before, act)
  return {
    ...{ atMs, action, by, topic: topicOf(letter), group: letter.envelope.consumer_group, jobId: before.id },
    ...{ subject: null, letter: letter.id, at: letter.at },
    before: auditView(before),
    after: after === null ? null : auditView(after, edit?.note),
  }
}

function viewAfter(view: JobView, { action, atMs, edit }: LetterAct): JobView | null {
  const payload = edit && { payload: edit.payload, payloadVersion: edit.payloadVersion }
  const changed = { ...view, ...payload, updatedAtMs: atMs }
  switch (action) {
    case 'replay':
      return {
        ...{ ...changed, state: 'queued', attempt: 0, replays: view.replays + 1 },
        ...{ error: null, completedAtMs: null, runAtMs: atMs },
      }
    case 'discard':
      return { ...changed, state: 'discarded' }
    case 'undo':
      return { ...changed, state: 'dead_letter' }
    case 'release':
      return changed
    case 'purge':
      return null
    default:
      return action satisfies never
  }
}

export function encodeAudit(entry: DlqAudit): { readonly key: Buffer; readonly value: Buffer } {
  const at = entry.at === null ? null : { ...entry.at, offset: String(entry.at.offset) }
  return { key: Buffer.from(`audit ${randomUUID()}`), value: Buffer.from(JSON.stringify({ ...entry, at })) }
}

/** Null for what is no entry. */
export function decodeAudit(key: Buffer | null, value: Buffer | null): DlqAudit | null {
  if (value === null || key?.subarray(0, 6).toString() !== 'audit ') return null
  const fields = fieldsOf(value)
  const by = byOf(fields?.by)
  if (fields === null || by === null || typeof fields.atMs !== 'number' || !isAction(fields.action)) return null
  const at = atOf(fields.at)
  return {
    ...{ atMs: fields.atMs, action: fields.action, by },
    ...{
      topic: textIn(fields, 'topic') ?? '',
      group: textIn(fields, 'group') ?? '',
      jobId: textIn(fields, 'jobId') ?? '',
    },
    ...{ subject: textIn(fields, 'subject'), letter: textIn(fields, 'letter') },
    at: at === null ? null : { ...at, offset: BigInt(at.offset) },
    before: asFields(fields.before) ?? {},
    after: asFields(fields.after),
  }
}

function isAction(action: unknown): action is DlqAction {
  return action === 'release' || AUDIT_ACTIONS.some((known) => known === action)
}

function textIn(fields: Fields, name: string): string | null {
  const value = fields[name]
  return typeof value === 'string' ? value : null
}
