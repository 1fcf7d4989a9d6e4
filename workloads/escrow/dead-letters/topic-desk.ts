/** Dead letters of Kafka topics for operators, as functions: JSON in, JSON out, and a coded error for a refusal. */

import { checkActor, type DeskActor } from '../../../src/desk/actor.ts'
import type { BulkProgress, Refusal } from '../../../src/desk/bulk.ts'
import { Desk } from '../../../src/desk/desk.ts'
import type { TopicsOfBroker } from '../../../src/engine/open.ts'
import { LETTER_STATES, type LetterState } from '../../../src/engines/kafka/dead-letters/states.ts'
import type { TopicLetters } from '../../../src/engines/kafka/dead-letters/topic-letters.ts'
import type { FoundLetter } from '../../../src/engines/kafka/dead-letters.ts'
import { BrokerTopics, type TopicLag } from '../../../src/engines/kafka/index.ts'
import { toDlqTopic } from '../../../src/engines/kafka/record.ts'
import { MillraceError, OptionError } from '../../../src/errors.ts'
import { Events } from '../../../src/events.ts'
import { checkListLimit } from '../../../src/job/list-limit.ts'
import { type Clock, systemClock } from '../../../src/time/clock.ts'
import { archiveLetters } from './archive.ts'
import {
  type AddressJson,
  addressOf,
  auditJson,
  type DlqAuditJson,
  type LetterJson,
  letterJson,
  offsetOf,
  wholeOf,
} from './letter-json.ts'

export interface DlqOutcome {
  readonly done: true
  /** Nothing was changed. */
  readonly dryRun: boolean
  readonly letter: LetterJson
}

export interface ReplayAllProgress {
  readonly seen: number
  readonly replayed: number
  readonly refused: Readonly<Partial<Record<Refusal, number>>>
}

export interface ReplayAllOutcome extends ReplayAllProgress {
  readonly dryRun: boolean
  readonly interrupted: boolean
}

export interface TopicDeskOptions {
  /** How often a letter may be replayed before it takes force. Default: 3. */
  readonly replaysMax?: number
  /** Called for every letter that was replayed, for the metric `worker.dlq.replayed`. */
  readonly onReplayed?: (dlqTopic: string) => void
  readonly clock?: Clock
}

const LIST_MAX = 1_000
const REPLAY_ALL_MAX = 1_000

/** Finds letters by topic and offset; what may be done to them, the desk of every engine decides. */
export class TopicDesk {
  readonly #letters: TopicLetters
  readonly #options: TopicDeskOptions

  constructor(letters: TopicLetters, options: TopicDeskOptions = {}) {
    this.#letters = letters
    this.#options = options
  }

  /** By partition and offset. Default: 100 pending letters. */
  async list(input: {
    readonly topic: string
    readonly state?: LetterState | 'every'
    readonly limit?: number
    readonly after?: { readonly partition: number; readonly offset: number | string }
  }): Promise<{ readonly letters: readonly LetterJson[] }> {
    const { topic, state = 'pending', limit = 100, after } = input
    if (state !== 'every' && !LETTER_STATES.includes(state))
      throw new OptionError(`'state' is ${state}; give 'every' or one of ${LETTER_STATES.join(', ')}`)
    checkListLimit(limit, LIST_MAX)
    await this.#letters.throwIfUnknown(topic)
    const page = after && { partition: wholeOf('partition', after.partition), offset: offsetOf(after.offset) }
    const found = await this.#letters.list(topic, { state, limit, ...(page && { after: page }) })
    return { letters: found.map(letterJson) }
  }

  /** How many letters are unresolved. */
  async pending({ topic }: { readonly topic: string }): Promise<{ readonly pending: number }> {
    await this.#letters.throwIfUnknown(topic)
    return { pending: await this.#letters.pending(topic) }
  }

  /** `POST /internal/v1/dlq/replay` */
  async replay(
    input: AddressJson & { readonly force?: boolean; readonly dryRun?: boolean },
    actor: DeskActor,
  ): Promise<DlqOutcome> {
    const { topic, force = false, dryRun = false } = input
    checkActor(actor, 'replay')
    const { id } = await this.#pendingAt(input)
    await this.#deskOf(topic).replay(id, actor, { force, dryRun })
    return this.#outcome(input, dryRun)
  }

  /** `POST /internal/v1/dlq/replay-all`: what is pending when it begins. Default limit: 1000 replays. */
  async replayAll(
    input: {
      readonly topic: string
      readonly limit?: number
      readonly rate?: number
      readonly force?: boolean
      readonly dryRun?: boolean
    },
    actor: DeskActor,
    watching: { readonly signal?: AbortSignal; readonly onProgress?: (progress: ReplayAllProgress) => void } = {},
  ): Promise<ReplayAllOutcome> {
    const { topic, limit = REPLAY_ALL_MAX, ...options } = input
    const { onProgress, signal } = watching
    checkActor(actor, 'replay')
    await this.#letters.throwIfUnknown(topic)
    const outcome = await this.#deskOf(topic).replayAll({ limit }, actor, {
      ...options,
      ...(signal && { signal }),
      ...(onProgress && { onProgress: (progress) => onProgress(replayProgress(progress)) }),
    })
    return { ...replayProgress(outcome), dryRun: outcome.dryRun, interrupted: outcome.interrupted }
  }

  /** `DELETE /internal/v1/dlq/{topic}/{offset}`: takes it off the list; the topic keeps it. Needs a reason. */
  async discard(input: AddressJson & { readonly dryRun?: boolean }, actor: DeskActor): Promise<DlqOutcome> {
    const { topic, dryRun = false } = input
    checkActor(actor, 'discard')
    const { id } = await this.#pendingAt(input)
    const { done } = await this.#deskOf(topic).discard({ ids: [id] }, actor, { dryRun })
    if (done === 0) throw notPending(await this.#letters.at(addressOf(input)))
    return this.#outcome(input, dryRun)
  }

  /** Gives up the claim of a process that died while acting. Check first whether the replay had arrived. */
  async release(input: AddressJson, actor: DeskActor): Promise<DlqOutcome> {
    const by = checkActor(actor, 'release')
    const found = await this.#letters.at(addressOf(input))
    if (await this.#letters.release(found, by)) return this.#outcome(input, false)
    throw new MillraceError(
      'ERR_STATE_TRANSITION',
      `letter ${found.letter.id} is not claimed; there is nothing to release`,
    )
  }

  /** Gives up all claims of a topic that are older than a minute. */
  async releaseAll({ topic }: { readonly topic: string }, actor: DeskActor): Promise<{ readonly released: number }> {
    const by = checkActor(actor, 'release')
    await this.#letters.throwIfUnknown(topic)
    return { released: await this.#letters.releaseAll(topic, by) }
  }

  /** Newest first. `before`: the number of the last entry of the previous page. Default limit: 100. */
  async audit(
    input: { readonly topic?: string; readonly who?: string; readonly limit?: number; readonly before?: number } = {},
  ): Promise<{ readonly entries: readonly DlqAuditJson[] }> {
    const { topic, who, limit = 100, before } = input
    checkListLimit(limit, LIST_MAX)
    const letters = topic === undefined ? null : toDlqTopic(topic)
    const entries: DlqAuditJson[] = []
    for await (const act of this.#letters.audited(before)) {
      if (entries.length >= limit) break
      const isWanted = (letters === null || act.at?.topic === letters) && (who === undefined || act.by.who === who)
      if (isWanted) entries.push(auditJson(act))
    }
    return { entries }
  }

  #deskOf(topic: string): Desk {
    const { clock = systemClock, replaysMax, onReplayed } = this.#options
    const events = new Events()
    events.on('desk.acted', ({ action }) => {
      if (action === 'replay') onReplayed?.(toDlqTopic(topic))
    })
    const store = { name: 'kafka', deadLetters: this.#letters.deadLettersOf(topic) }
    return new Desk(store, { clock, ...(replaysMax !== undefined && { replaysMax }) }, events)
  }

  async #pendingAt(input: AddressJson): Promise<FoundLetter> {
    const found = await this.#letters.at(addressOf(input))
    if (found.state.state !== 'pending') throw notPending(found)
    return found
  }

  async #outcome(input: AddressJson, dryRun: boolean): Promise<DlqOutcome> {
    return { done: true, dryRun, letter: letterJson(await this.#letters.at(addressOf(input))) }
  }
}

export interface OpenTopicDeskOptions extends TopicDeskOptions {
  /** Whose lag is shown. Default: the group of the URL. */
  readonly groups?: readonly string[]
}

/**
 * Opens the dead letters of a Kafka cluster for an operator: those of all topics and all groups. It joins no group.
 *
 * @example
 * const dlq = await openTopicDesk('kafka://127.0.0.1:9092')
 * const { letters } = await dlq.list({ topic: 'escrow.commands' })
 * await dlq.replayAll({ topic: 'escrow.commands', rate: 50 }, { who: 'ann', reason: 'the bank is back' })
 * await dlq.close()
 */
export async function openTopicDesk(url: string, options: OpenTopicDeskOptions = {}): Promise<OpenTopicDesk> {
  const { clock = systemClock, groups } = options
  return new OpenTopicDesk(await BrokerTopics.open(url, { clock, ...(groups && { groups }) }), { ...options, clock })
}

/** The desk on topics that are already open; they stay open. Null where they are not Kafka's. */
export function deskOn(
  topics: TopicsOfBroker,
  options: TopicDeskOptions & { readonly clock: Clock },
): OpenTopicDesk | null {
  return topics instanceof BrokerTopics ? new OpenTopicDesk(topics, options) : null
}

/** The desk on a broker, with what a watch and the dashboard show. */
export class OpenTopicDesk extends TopicDesk {
  readonly #broker: BrokerTopics
  readonly #clock: Clock

  constructor(broker: BrokerTopics, options: TopicDeskOptions & { readonly clock: Clock }) {
    super(broker.letters, options)
    this.#broker = broker
    this.#clock = options.clock
  }

  /** How far the groups are behind, by topic. */
  lags(): Promise<readonly TopicLag[]> {
    return this.#broker.lags()
  }

  /** Unresolved letters by DLQ topic, for the metric `worker.dlq.pending`. */
  pendingByTopic(): Promise<readonly { readonly topic: string; readonly count: number }[]> {
    return this.#broker.pendingByTopic()
  }

  /**
   * What the HTTP API takes as `topics`. `limits`: the lag of a topic from which it is worth a warning or more.
   *
   * @example
   * const admin = createAdmin(mill, { topics: dlq.watched(escrowLagLimits), routes: dlqRoutes(dlq) })
   */
  watched(limits: (topic: string) => { readonly warning: number; readonly critical: number } | null = () => null) {
    return { lags: () => this.lags(), pending: () => this.pendingByTopic(), limits }
  }

  /**
   * Moves old letters into the archive: ordinary ones after 30 days, financial ones 30 days after an operator has replayed
   * or discarded them. Default archive: a topic that keeps everything.
   */
  async archive(
    { topic, isFinancial }: { readonly topic: string; readonly isFinancial: boolean },
    write: (lines: readonly string[]) => Promise<void> = (lines) => this.#broker.archive(lines),
  ): Promise<{ readonly archived: number }> {
    return { archived: await archiveLetters(this.#broker.letters, topic, { isFinancial, write, clock: this.#clock }) }
  }

  close(): Promise<void> {
    return this.#broker.close()
  }
}

function replayProgress({ seen, done, refused }: BulkProgress): ReplayAllProgress {
  return { seen, replayed: done, refused }
}

function notPending({ letter: { id }, state: { state, by, claim } }: FoundLetter): MillraceError {
  const who = by?.who ?? 'another operator'
  if (state === 'pending')
    return new MillraceError(
      'ERR_STATE_TRANSITION',
      `another operator tried to act on letter ${id} at the same time; try again`,
    )
  const text = state === 'claimed' ? `${who} acts on letter ${id} now` : `letter ${id} was ${state} by ${who}`
  return new MillraceError('ERR_STATE_TRANSITION', claim === null ? text : `${text}; if that process died, release it`)
}
