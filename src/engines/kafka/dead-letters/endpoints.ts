/** The dead-letter endpoints as functions: JSON in, JSON out, and a coded error for what is refused. */
import type { Actor } from '../../../engine/dead-letters.ts'
import { MillraceError, OptionError } from '../../../errors.ts'
import { toDlqTopic } from '../record.ts'
import type { DlqAnswer, DlqRefusal } from './answers.ts'
import { auditJson, type DlqAuditJson, type LetterJson, letterJson } from './json.ts'
import type { LetterLog } from './letter-log.ts'
import { LETTER_STATES, type LetterState } from './states.ts'
import type { DlqAddress, ReplayAllProgress, TopicDesk } from './topic-desk.ts'

/** A discard needs a reason. */
type DlqActor = Pick<Actor, 'who'> & Partial<Actor>

export interface AddressJson {
  /** With `.dlq` or without. */
  readonly topic: string
  /** Needed where several partitions have the offset. */
  readonly partition?: number
  readonly offset: number | string
}

export interface DlqOutcome {
  readonly done: true
  /** Nothing was changed. */
  readonly dryRun: boolean
  readonly letter: LetterJson
}

export interface ReplayAllOutcome extends ReplayAllProgress {
  readonly dryRun: boolean
  readonly interrupted: boolean
}

const CODES = {
  'not-found': 'ERR_JOB_UNKNOWN',
  ambiguous: 'ERR_DESK_REFUSED',
  'not-pending': 'ERR_STATE_TRANSITION',
  'replayed-too-often': 'ERR_DESK_REFUSED',
  'unknown-origin': 'ERR_DESK_REFUSED',
} as const satisfies Record<DlqRefusal, string>

const LIST_MAX = 1_000

export class DlqEndpoints {
  readonly #desk: TopicDesk
  readonly #log: LetterLog

  /** Use `openTopicDesk`. */
  constructor(desk: TopicDesk, log: LetterLog) {
    this.#desk = desk
    this.#log = log
  }

  /** Pending ones unless told, a hundred unless told, by partition and offset. */
  async list(input: {
    readonly topic: string
    readonly state?: LetterState | 'every'
    readonly limit?: number
    readonly after?: { readonly partition: number; readonly offset: number | string }
  }): Promise<{ readonly letters: readonly LetterJson[] }> {
    const { topic, state = 'pending', limit = 100, after } = input
    if (state !== 'every' && !LETTER_STATES.includes(state))
      throw new OptionError(`'state' is ${state}; give 'every' or one of ${LETTER_STATES.join(', ')}`)
    if (!Number.isInteger(limit) || limit < 1 || limit > LIST_MAX)
      throw new OptionError(`'limit' is ${limit}; give a whole number from 1 to ${LIST_MAX}`)
    await this.#throwIfUnknown(topic)
    const page = after && { partition: wholeOf('partition', after.partition), offset: offsetOf(after.offset) }
    const found = await this.#desk.list(topic, { state, limit, ...(page && { after: page }) })
    return { letters: found.map((one) => letterJson(one.letter, one.state)) }
  }

  /** How many nobody has decided about. */
  async pending({ topic }: { readonly topic: string }): Promise<{ readonly pending: number }> {
    await this.#throwIfUnknown(topic)
    return { pending: await this.#desk.pending(topic) }
  }

  /** `POST /internal/v1/dlq/replay` */
  async replay(
    input: AddressJson & { readonly force?: boolean; readonly dryRun?: boolean },
    acting: DlqActor,
  ): Promise<DlqOutcome> {
    const { force = false, dryRun = false } = input
    const by = byOf(acting, 'replay')
    return this.#outcome(await this.#desk.replay(addressOf(input), { by, force, dryRun }), dryRun)
  }

  /** `POST /internal/v1/dlq/replay-all` */
  async replayAll(
    input: {
      readonly topic: string
      readonly limit?: number
      readonly rate?: number
      readonly force?: boolean
      readonly dryRun?: boolean
    },
    acting: DlqActor,
    watching: { readonly signal?: AbortSignal; readonly onProgress?: (progress: ReplayAllProgress) => void } = {},
  ): Promise<ReplayAllOutcome> {
    const { topic, ...options } = input
    await this.#throwIfUnknown(topic)
    const progress = await this.#desk.replayAll(topic, { ...options, ...watching, by: byOf(acting, 'replay') })
    return { ...progress, dryRun: options.dryRun ?? false, interrupted: watching.signal?.aborted ?? false }
  }

  /** `DELETE /internal/v1/dlq/{topic}/{offset}` */
  async discard(input: AddressJson & { readonly dryRun?: boolean }, acting: DlqActor): Promise<DlqOutcome> {
    const { dryRun = false } = input
    const by = byOf(acting, 'discard')
    return this.#outcome(await this.#desk.discard(addressOf(input), { by, dryRun }), dryRun)
  }

  /** Gives up the claim of somebody who died while acting. Look first whether the replay had arrived. */
  async release(input: AddressJson, acting: DlqActor): Promise<DlqOutcome> {
    return this.#outcome(await this.#desk.release(addressOf(input), { by: byOf(acting, 'release') }), false)
  }

  /** The same for all of a topic that were claimed more than a minute ago. */
  async releaseAll({ topic }: { readonly topic: string }, acting: DlqActor): Promise<{ readonly released: number }> {
    await this.#throwIfUnknown(topic)
    return { released: await this.#desk.releaseAll(topic, { by: byOf(acting, 'release') }) }
  }

  /** What was done, newest first. `before`: the number of the last entry of the page before. */
  async audit(
    input: { readonly topic?: string; readonly who?: string; readonly limit?: number; readonly before?: number } = {},
  ): Promise<{ readonly entries: readonly DlqAuditJson[] }> {
    const { topic, who, limit = 100, before } = input
    const letters = topic === undefined ? null : toDlqTopic(topic)
    const entries: DlqAuditJson[] = []
    for await (const act of this.#log.audited(before)) {
      if (entries.length >= limit) break
      const isWanted = (letters === null || act.at?.topic === letters) && (who === undefined || act.by.who === who)
      if (isWanted) entries.push(auditJson(act))
    }
    return { entries }
  }

  async #outcome(answer: DlqAnswer, dryRun: boolean): Promise<DlqOutcome> {
    if (!answer.done) throw new MillraceError(CODES[answer.why], answer.text)
    const state = (await this.#log.states()).of(answer.letter.id)
    return { done: true, dryRun, letter: letterJson(answer.letter, state) }
  }

  /** A topic that has had no dead letter is known; one that nobody has created was misspelt. */
  async #throwIfUnknown(topic: string): Promise<void> {
    const letters = toDlqTopic(topic)
    const jobs = letters.slice(0, -'.dlq'.length)
    const found = await this.#log.partitions([letters, jobs])
    if (found.size === 0)
      throw new MillraceError(
        'ERR_JOB_UNKNOWN',
        `there is no topic '${jobs}' and no '${letters}'; look at its spelling`,
      )
  }
}

function byOf({ who, reason = '' }: DlqActor, otherwise: string): Actor {
  return { who, reason: reason.trim() === '' && otherwise !== 'discard' ? otherwise : reason }
}

function addressOf({ topic, partition, offset }: AddressJson): DlqAddress {
  return {
    topic,
    offset: offsetOf(offset),
    ...(partition !== undefined && { partition: wholeOf('partition', partition) }),
  }
}

function wholeOf(name: string, value: number): number {
  if (Number.isSafeInteger(value) && value >= 0) return value
  throw new OptionError(`'${name}' is ${value}; give a whole number from 0`)
}

function offsetOf(offset: number | string): bigint {
  if (/^\d{1,19}$/.test(String(offset))) return BigInt(offset)
  throw new OptionError(`'offset' is ${offset}; give a whole number from 0`)
}
