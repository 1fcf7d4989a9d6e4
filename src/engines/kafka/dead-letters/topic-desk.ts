/** Operators' acts on dead letters in topics: functions behind the dead-letter endpoints. Nothing here acts by itself. */
import type { Actor } from '../../../engine/dead-letters.ts'
import { OptionError } from '../../../errors.ts'
import { type Clock, systemClock } from '../../../time/clock.ts'
import { type Coordinates, toDlqTopic } from '../record.ts'
import { type DlqAnswer, type DlqRefusal, done, notPending, refusal } from './answers.ts'
import { entryOf } from './audit.ts'
import type { TopicLetter } from './letter.ts'
import type { LetterLog } from './letter-log.ts'
import { type Resolving, resolveLetters, throwIfTopicMissing } from './resolve.ts'
import { isOpen, type LetterState, releaseRecord } from './states.ts'
import { type ListedLetter, lettersAt, walkLetters, walkListed } from './walk.ts'

/** A record that fails after so many replays needs another remedy. */
export const REPLAYS_MAX = 3
const LIST_MAX = 100
const REPLAY_ALL_MAX = 1_000
const BATCH_MAX = 100
/** Nobody who is alive acts on a letter for so long. */
const CLAIM_MS = 60_000

/** Which letter is meant. Without a partition it must be the only one at its offset. */
export interface DlqAddress {
  /** With `.dlq` or without. */
  readonly topic: string
  readonly partition?: number
  readonly offset: bigint | number
}

export interface ReplayAllProgress {
  readonly seen: number
  readonly replayed: number
  readonly refused: Readonly<Partial<Record<DlqRefusal, number>>>
}

/** Who acts. With `dryRun` nothing is changed, and the answer says what would have been. */
export interface ActOptions {
  readonly by: Actor
  readonly dryRun?: boolean
}

export interface ReplayAllOptions extends ActOptions {
  /** Letters replayed at most: 1000 unless told. */
  readonly limit?: number
  /** Letters per second at most. */
  readonly rate?: number
  /** Also those that were replayed too often. */
  readonly force?: boolean
  readonly signal?: AbortSignal
  readonly onProgress?: (progress: ReplayAllProgress) => void
}

export interface TopicDeskOptions {
  readonly clock?: Clock
  readonly replaysMax?: number
  /** What topics begin with before the type of their jobs. */
  readonly prefix?: string
  /** Told of every letter that was replayed, for `worker.dlq.replayed`. */
  readonly onReplayed?: (dlqTopic: string) => void
}

export class TopicDesk {
  readonly #log: LetterLog
  readonly #clock: Clock
  readonly #parts: { readonly log: LetterLog; readonly clock: Clock; readonly prefix: string }
  readonly #replaysMax: number
  readonly #options: TopicDeskOptions

  constructor(log: LetterLog, options: TopicDeskOptions = {}) {
    this.#log = log
    this.#clock = options.clock ?? systemClock
    this.#parts = { log, clock: this.#clock, prefix: options.prefix ?? '' }
    this.#replaysMax = options.replaysMax ?? REPLAYS_MAX
    this.#options = options
  }

  /** Letters of a topic by partition and offset: pending ones unless told. */
  async list(
    topic: string,
    options: {
      readonly state?: LetterState | 'every'
      readonly limit?: number
      readonly after?: Pick<Coordinates, 'partition' | 'offset'>
    } = {},
  ): Promise<readonly ListedLetter[]> {
    const { state = 'pending', limit = LIST_MAX } = options
    const found: ListedLetter[] = []
    for await (const listed of walkListed(this.#log, toDlqTopic(topic), options.after)) {
      if (found.length >= limit) break
      if (state === 'every' || listed.state.state === state) found.push(listed)
    }
    return found
  }

  /** Letters that nobody has resolved, those that somebody acts on included. */
  async pending(topic: string): Promise<number> {
    let count = 0
    for await (const { state } of walkListed(this.#log, toDlqTopic(topic))) {
      if (isOpen(state)) count += 1
    }
    return count
  }

  /** Back to its topic, with its key and value, for the group that failed on it. */
  async replay(address: DlqAddress, options: ActOptions & { readonly force?: boolean }): Promise<DlqAnswer> {
    checkBy(options.by)
    return this.#one(address, (letter) => this.#replayEach([letter], options))
  }

  /** Takes it off the list for good; the log keeps it. Needs a reason. */
  async discard(address: DlqAddress, { by, dryRun = false }: ActOptions): Promise<DlqAnswer> {
    checkBy(by, 'discarded')
    return this.#one(address, (letter) =>
      dryRun
        ? this.#wouldAct([letter])
        : this.#resolve([letter], { from: ['pending'], to: 'discarded', action: 'discard', by }),
    )
  }

  /** Gives up somebody's claim, who died while acting: look first whether the replay had already arrived. */
  async release(address: DlqAddress, { by }: { readonly by: Actor }): Promise<DlqAnswer> {
    checkBy(by)
    return this.#one(address, async (letter) => {
      const state = (await this.#log.states()).of(letter.id)
      if ((await this.#release([{ letter, state }], by)) > 0) return [done(letter)]
      return [refusal('not-pending', `nobody acts on letter ${letter.id}; there is nothing to release`)]
    })
  }

  /** The same for all claims of a topic that are older, as when a broker went away in the middle of many replays. */
  async releaseAll(
    topic: string,
    { by, olderThanMs = CLAIM_MS }: { readonly by: Actor; readonly olderThanMs?: number },
  ): Promise<number> {
    checkBy(by)
    const old: ListedLetter[] = []
    for await (const listed of walkListed(this.#log, toDlqTopic(topic))) {
      const { claim, sinceMs } = listed.state
      if (claim !== null && this.#clock.nowMs() - (sinceMs ?? 0) >= olderThanMs) old.push(listed)
    }
    let released = 0
    for (let start = 0; start < old.length; start += BATCH_MAX)
      released += await this.#release(old.slice(start, start + BATCH_MAX), by)
    return released
  }

  async #release(listed: readonly ListedLetter[], by: Actor): Promise<number> {
    const act = { action: 'release', by, atMs: this.#clock.nowMs(), prefix: this.#parts.prefix } as const
    const held = listed.filter(({ state }) => state.claim !== null)
    if (held.length === 0) return 0
    await this.#log.write(
      held.map(({ letter, state }) => releaseRecord(letter.id, state.claim ?? '')),
      held.map(({ letter, state }) => entryOf(letter, state, act)),
    )
    return held.length
  }

  /** Replays what is pending, oldest first in each partition. Repeating the call goes on where an aborted one ended. */
  async replayAll(topic: string, options: ReplayAllOptions): Promise<ReplayAllProgress> {
    const { limit = REPLAY_ALL_MAX, dryRun = false, signal } = options
    checkAbove0('limit', limit)
    const rate = options.rate ?? Number.POSITIVE_INFINITY
    checkAbove0('rate', rate)
    checkBy(options.by)
    const startedMs = this.#clock.monotonicMs()
    const refused: Partial<Record<DlqRefusal, number>> = {}
    let [seen, replayed] = [0, 0]
    for await (const batch of this.#batches(toDlqTopic(topic), rate)) {
      if (signal?.aborted === true || replayed >= limit) break
      const some = batch.slice(0, limit - replayed)
      const answers = await this.#replayEach(some, options)
      for (const answer of answers) {
        seen += 1
        if (answer.done) replayed += 1
        else refused[answer.why] = (refused[answer.why] ?? 0) + 1
      }
      options.onProgress?.({ seen, replayed, refused: { ...refused } })
      const pauseMs = startedMs + (replayed / rate) * 1_000 - this.#clock.monotonicMs()
      if (!dryRun && pauseMs > 0) await this.#clock.sleep(pauseMs, signal)
    }
    return { seen, replayed, refused }
  }

  async #one(address: DlqAddress, act: (letter: TopicLetter) => Promise<readonly DlqAnswer[]>): Promise<DlqAnswer> {
    const topic = toDlqTopic(address.topic)
    const [letter, ...others] = await lettersAt(this.#log, topic, BigInt(address.offset), address.partition)
    const where = `${topic} at offset ${address.offset}`
    if (letter === undefined) return refusal('not-found', `no dead letter in ${where}`)
    if (others.length > 0)
      return refusal('ambiguous', `${others.length + 1} partitions have a letter in ${where}; give the partition`)
    const [answer] = await act(letter)
    return answer ?? refusal('not-found', `no dead letter in ${where}`)
  }

  async *#batches(topic: string, rate: number): AsyncGenerator<readonly TopicLetter[]> {
    // Ten batches a second at least, so that a low rate is even and an abort is soon heard.
    const max = Math.max(1, Math.min(BATCH_MAX, Math.floor(rate / 10)))
    const book = await this.#log.states()
    for await (const page of walkLetters(this.#log, topic)) {
      const pending = page.filter(({ id }) => book.of(id).state === 'pending')
      for (let start = 0; start < pending.length; start += max) yield pending.slice(start, start + max)
    }
  }

  #against(letter: TopicLetter, { force = false }: { readonly force?: boolean }): DlqAnswer | null {
    if (letter.isTorn) {
      return refusal('unknown-origin', `parts of letter ${letter.id} are deleted from its topic; discard it`)
    }
    if (letter.replayed() === null) {
      return refusal(
        'unknown-origin',
        `letter ${letter.id} does not say where it came from; discard it, or write it back by hand`,
      )
    }
    const { replay_count: count } = letter.envelope
    if (force || count < this.#replaysMax) return null
    return refusal(
      'replayed-too-often',
      `letter ${letter.id} was replayed ${count} times and failed again; discard it, or force another replay`,
    )
  }

  async #replayEach(
    letters: readonly TopicLetter[],
    options: ActOptions & { readonly force?: boolean },
  ): Promise<readonly DlqAnswer[]> {
    const refusals = new Map(letters.map((letter) => [letter, this.#against(letter, options)]))
    const admitted = letters.filter((letter) => refusals.get(letter) === null)
    const answers = await (options.dryRun === true ? this.#wouldAct(admitted) : this.#replayNow(admitted, options.by))
    const answered = new Map(admitted.map((letter, index) => [letter, answers[index]]))
    return letters.flatMap((letter) => refusals.get(letter) ?? answered.get(letter) ?? [])
  }

  async #replayNow(letters: readonly TopicLetter[], by: Actor): Promise<readonly DlqAnswer[]> {
    const records = new Map(letters.map((letter) => [letter, letter.replayed()]))
    const written = (some: readonly TopicLetter[]) => some.flatMap((letter) => records.get(letter) ?? [])
    await throwIfTopicMissing(this.#log, written(letters))
    const answers = await this.#resolve(letters, {
      ...{ from: ['pending'], to: 'replayed', action: 'replay', by },
      perform: (held) => this.#log.produce(written(held)),
    })
    for (const answer of answers) if (answer.done) this.#options.onReplayed?.(answer.letter.at.topic)
    return answers
  }

  async #wouldAct(letters: readonly TopicLetter[]): Promise<readonly DlqAnswer[]> {
    const book = await this.#log.states()
    return letters.map((letter) => (book.of(letter.id).state === 'pending' ? done(letter) : notPending(letter, book)))
  }

  async #resolve(letters: readonly TopicLetter[], resolving: Resolving): Promise<readonly DlqAnswer[]> {
    if (letters.length === 0) return []
    const { held, book } = await resolveLetters(this.#parts, letters, resolving)
    return letters.map((letter) => (held.has(letter) ? done(letter) : notPending(letter, book)))
  }
}

/** Who did something must be known; what takes work away must say why. */
function checkBy({ who, reason }: Actor, needsReason?: 'discarded'): void {
  if (who.trim() === '') throw new OptionError(`'who' is empty; say who does this`)
  if (needsReason !== undefined && reason.trim() === '')
    throw new OptionError(`'reason' is missing; say why this is ${needsReason}`)
}

function checkAbove0(name: string, value: number): void {
  if (value > 0) return
  throw new OptionError(`'${name}' is ${value}; give a number above 0`)
}
