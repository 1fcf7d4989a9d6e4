/** What operators do besides acting on dead letters, and the audit entry that each act leaves. */
import { deadLettersOf, pausesOf } from '../engine/capability-checks.ts'
import type { Actor, AuditNote, OperatorAction } from '../engine/dead-letters.ts'
import type { Engine } from '../engine/engine.ts'
import { type OptionNames, refuseUnknown } from '../job/known-options.ts'

const ACTOR_NAMES: OptionNames<Partial<Actor>> = { who: true, reason: true }

export function checkActor(by: Partial<Actor>, of: string): void {
  refuseUnknown(by, ACTOR_NAMES, of)
}

/** An act for the audit. */
export interface Note extends Actor {
  readonly action: OperatorAction
  readonly jobId?: string
  readonly type?: string
  /** What the act is about, if neither a job nor a type: such as a schedule's name. */
  readonly subject?: string
  readonly before?: Readonly<Record<string, unknown>>
  readonly after?: Readonly<Record<string, unknown>>
}

export async function writeNote(engine: Engine, note: Note): Promise<void> {
  const { who, reason, action, jobId, type, subject, before, after } = note
  const entry: AuditNote = {
    ...{ who, reason, action },
    jobId: jobId ?? null,
    type: type ?? null,
    subject: subject ?? null,
    before: before ?? {},
    after: after ?? null,
  }
  await deadLettersOf(engine).note(entry)
}

/** False if the type was paused already; the audit then has no entry either. */
export async function pauseType(engine: Engine, type: string, given: Partial<Actor>): Promise<boolean> {
  checkActor(given, 'pause')
  const by = { who: given.who ?? 'api', reason: given.reason ?? 'paused' }
  const isDone = await pausesOf(engine).pause(type, by)
  if (isDone && isAudited(engine)) await writeNote(engine, { ...by, action: 'pause', type })
  return isDone
}

/** False if the type was not paused. */
export async function resumeType(engine: Engine, type: string, given: Partial<Actor>): Promise<boolean> {
  checkActor(given, 'resume')
  const by = { who: given.who ?? 'api', reason: given.reason ?? 'resumed' }
  const isDone = await pausesOf(engine).resume(type)
  if (isDone && isAudited(engine)) await writeNote(engine, { ...by, action: 'resume', type })
  return isDone
}

export function isAudited({ deadLetters }: Engine): boolean {
  return deadLetters !== undefined
}
