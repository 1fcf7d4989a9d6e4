/** Operators' acts on dead letters in topics: functions behind document D's endpoints. Nothing here acts by itself. */
import { randomUUID } from 'node:crypto'
import type { By } from '../../../engine/dead-letters.ts'
import { OptionError } from '../../../errors.ts'
import { type Clock, systemClock } from '../../../time/clock.ts'
import { type DlqAnswer, type DlqRefusal, done, notPending, refusal } from './answers.ts'
import type { TopicLetter } from './letter.ts'
import type { DeadLetterLog, DlqAudit } from './log.ts'
import { type Coordinates, toDlqTopic } from './record.ts'
import { claimRecord, type LetterState, type Resolution, releaseRecord, resolvedRecord } from './states.ts'
import { type ListedLetter, lettersAt, walkLetters, walkListed } from './walk.ts'

/** X151: a record that fails after so many replays needs another remedy. */
export const REPLAYS_MAX = 3
const LIST_MAX = 100
const REPLAY_ALL_MAX = 1_000
const BATCH_MAX = 100

/** Which letter is meant. Without a partition it must be the only one at its offset (X147). */
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

export interface ReplayAllOptions {
  readonly by: By
  /** Letters replayed at most: 1000 unless told (X150). */
  readonly limit?: number
  /** Letters per second at most. */
  readonly rate?: number
  /** Only say how many it would be. */
  readonly dryRun?: boolean
  /** Also those that were replayed too often. */
  readonly force?: boolean
  readonly signal?: AbortSignal
  readonly onProgress?: (progress: ReplayAllProgress) => void
}

export interface TopicDeskOptions {
  readonly clock?: Clock
  readonly replaysMax?: number
  /** Told of every letter that was replayed, for `worker.dlq.replayed`. */
  readonly onReplayed?: (dlqTopic: string) => void
}

export class TopicDesk {
  readonly #log: DeadLetterLog
  readonly #clock: Clock
  readonly #replaysMax: number
  readonly #options: TopicDeskOptions

  constructor(log: DeadLetterLog, options: TopicDeskOptions = {}) {
    this.#log = log
    this.#clock = options.clock ?? systemClock
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

  /** Letters that nobody has resolved, those that somebody acts on included (X148). */
  async pending(topic: string): Promise<number> {
    let count = 0
    for await (const { state } of walkListed(this.#log, toDlqTopic(topic))) {
      if (state.state === 'pending' || state.state === 'claimed') count += 1
    }
    return count
  }

  /** Back to its topic, with its key and value, for the group that failed on it. */
  replay(address: DlqAddress, options: { readonly by: By; readonly force?: boolean }): Promise<DlqAnswer> {
    return this.#one(address, (letter) => this.#replayEach([letter], options))
  }

  discard(address: DlqAddress, { by }: { readonly by: By }): Promise<DlqAnswer> {
    return this.#one(address, (letter) =>
      this.#resolve([letter], 'discarded', by, async (held) => {
        await this.#log.audit(held.map((one) => this.#entry('discard', one, by)))
      }),
    )
  }

  /** Gives up somebody's claim, who died while acting: look first whether the replay had already arrived. */
  async release(address: DlqAddress, { by }: { readonly by: By }): Promise<DlqAnswer> {
    return this.#one(address, async (letter) => {
      const { claim } = (await this.#log.states()).of(letter.id)
      if (claim === null)
        return [refusal('not-pending', `nobody acts on letter ${letter.id}; there is nothing to release`)]
      await this.#log.audit([this.#entry('release', letter, by)])
      await this.#log.appendStates([releaseRecord(letter.id, claim)])
      return [{ done: true, letter }]
    })
  }

  /** Replays what is pending, oldest first in each partition. Repeating the call goes on where an aborted one ended. */
  async replayAll(topic: string, options: ReplayAllOptions): Promise<ReplayAllProgress> {
    const { limit = REPLAY_ALL_MAX, dryRun = false, signal } = options
    checkAbove0('limit', limit)
    const rate = options.rate ?? Number.POSITIVE_INFINITY
    checkAbove0('rate', rate)
    const startedMs = this.#clock.monotonicMs()
    const refused: Partial<Record<DlqRefusal, number>> = {}
    let [seen, replayed] = [0, 0]
    for await (const batch of this.#batches(toDlqTopic(topic), rate)) {
      if (signal?.aborted === true || replayed >= limit) break
      const some = batch.slice(0, limit - replayed)
      const answers = dryRun
        ? some.map((one) => this.#against(one, options) ?? done(one))
        : await this.#replayEach(some, options)
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

  async #replayEach(letters: readonly TopicLetter[], options: { readonly by: By; readonly force?: boolean }) {
    const refusals = new Map(letters.map((letter) => [letter, this.#against(letter, options)]))
    const admitted = letters.filter((letter) => refusals.get(letter) === null)
    const answers = await this.#resolve(admitted, 'replayed', options.by, async (held) => {
      await this.#log.produce(held.flatMap((one) => one.replayed() ?? []))
      await this.#log.audit(held.map((one) => this.#entry('replay', one, options.by)))
    })
    for (const answer of answers) if (answer.done) this.#options.onReplayed?.(answer.letter.at.topic)
    const answered = new Map(admitted.map((letter, index) => [letter, answers[index]]))
    return letters.flatMap((letter) => refusals.get(letter) ?? answered.get(letter) ?? [])
  }

  /**
   * Claims, acts, resolves. Of two who act on one letter the first in the log has it. If acting fails nobody knows how
   * far it came, so the claims stay: the letter is not lost and not acted on again until an operator releases it.
   */
  async #resolve(
    letters: readonly TopicLetter[],
    state: Resolution,
    by: By,
    act: (held: readonly TopicLetter[]) => Promise<void>,
  ): Promise<readonly DlqAnswer[]> {
    if (letters.length === 0) return []
    const before = await this.#log.states()
    const claim = randomUUID()
    const free = letters.filter(({ id }) => before.of(id).state === 'pending')
    await this.#log.appendStates(
      free.map(({ id }) => claimRecord({ letter: id, claim, atMs: this.#clock.nowMs(), by })),
    )
    const book = await this.#log.states()
    const held = free.filter(({ id }) => book.of(id).claim === claim)
    const late = free.filter((letter) => !held.includes(letter))
    if (late.length > 0) await this.#log.appendStates(late.map(({ id }) => releaseRecord(id, claim)))
    if (held.length > 0) {
      await act(held)
      await this.#log.appendStates(held.map((letter) => this.#resolved(letter, state, by)))
    }
    return letters.map((letter) => (held.includes(letter) ? done(letter) : notPending(letter, book)))
  }

  #resolved({ id, at }: TopicLetter, state: Resolution, by: By) {
    const { topic, partition, offset } = at
    return resolvedRecord({
      letter: id,
      state,
      at: { topic, partition, offset: String(offset) },
      atMs: this.#clock.nowMs(),
      by,
    })
  }

  #entry(action: DlqAudit['action'], letter: TopicLetter, by: By): DlqAudit {
    return { atMs: this.#clock.nowMs(), action, at: letter.at, letter: letter.id, by }
  }
}

function checkAbove0(name: string, value: number): void {
  if (value > 0) return
  throw new OptionError(`'${name}' is ${value}; give a number above 0`)
}
