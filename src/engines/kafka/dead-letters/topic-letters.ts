import type { Actor, DeadLetterFilter } from '../../../engine/dead-letters.ts'
import { MillraceError } from '../../../errors.ts'
import type { Clock } from '../../../time/clock.ts'
import { type FoundLetter, KafkaDeadLetters, type LetterLocator } from '../dead-letters.ts'
import { type Coordinates, DLQ_SUFFIX, toDlqTopic } from '../record.ts'
import { type AuditedAct, entryOf } from './audit.ts'
import type { TopicLetter } from './letter.ts'
import type { LetterLog } from './letter-log.ts'
import { isOpen, type LetterState, releaseRecord } from './states.ts'
import { type ListedLetter, lettersAt, lettersOf, walkLetters, walkListed } from './walk.ts'

const LIST_MAX = 100
const BATCH_MAX = 100
/** An act takes seconds: a claim that is older belongs to a process that died. */
const CLAIM_MS = 60_000

/** Names one letter. Without a partition, the offset must be unique in the topic. */
export interface LetterAddress {
  /** With `.dlq` or without. */
  readonly topic: string
  readonly partition?: number
  readonly offset: bigint
}

/** The dead letters of all groups, by topic, partition and offset. What may be done to them, a desk decides. */
export class TopicLetters {
  readonly #log: LetterLog
  readonly #clock: Clock
  readonly #prefix: string

  constructor(log: LetterLog, { clock, prefix = '' }: { readonly clock: Clock; readonly prefix?: string }) {
    this.#log = log
    this.#clock = clock
    this.#prefix = prefix
  }

  /** By partition and offset. Default: 100 pending letters. */
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
    for await (const listed of this.walk(topic, options.after)) {
      if (found.length >= limit) break
      if (state === 'every' || listed.state.state === state) found.push(listed)
    }
    return found
  }

  /** Unresolved letters, including those that are claimed. */
  async pending(topic: string): Promise<number> {
    let count = 0
    for await (const { state } of this.walk(topic)) if (isOpen(state)) count += 1
    return count
  }

  walk(topic: string, after?: Pick<Coordinates, 'partition' | 'offset'>): AsyncGenerator<ListedLetter> {
    return walkListed(this.#log, toDlqTopic(topic), after)
  }

  /** Throws where no letter has the address, or more than one. */
  async at({ topic, partition, offset }: LetterAddress): Promise<FoundLetter> {
    const dlqTopic = toDlqTopic(topic)
    const [letter, ...others] = await lettersAt(this.#log, dlqTopic, offset, partition)
    const where = `${dlqTopic} at offset ${offset}`
    if (letter === undefined) throw new MillraceError('ERR_JOB_UNKNOWN', `no dead letter in ${where}`)
    if (others.length > 0)
      throw new MillraceError(
        'ERR_DESK_REFUSED',
        `${others.length + 1} partitions have a letter in ${where}; give the partition`,
      )
    const book = await this.#log.states()
    return { id: placeId(letter.at), letter, state: book.of(letter.id) }
  }

  /**
   * What a desk acts on: the letters of a topic that are pending now, by partition and offset, so that records of one key
   * are replayed in their order. It gives out every letter once.
   */
  deadLettersOf(topic: string): KafkaDeadLetters {
    const [log, clock, prefix] = [this.#log, this.#clock, this.#prefix]
    return new KafkaDeadLetters({ log, clock, prefix, group: null, locator: new TopicWalk(log, toDlqTopic(topic)) })
  }

  /** Gives up the claim of a process that died while acting. False where nothing is claimed. */
  async release({ letter, state }: ListedLetter, by: Actor): Promise<boolean> {
    return (await this.#release([{ letter, state }], by)) > 0
  }

  /** Gives up all older claims of a topic. Default age: one minute. Returns how many there were. */
  async releaseAll(topic: string, by: Actor, olderThanMs = CLAIM_MS): Promise<number> {
    const old: ListedLetter[] = []
    for await (const listed of this.walk(topic)) {
      const { claim, sinceMs } = listed.state
      if (claim !== null && this.#clock.nowMs() - (sinceMs ?? 0) >= olderThanMs) old.push(listed)
    }
    let released = 0
    for (let start = 0; start < old.length; start += BATCH_MAX)
      released += await this.#release(old.slice(start, start + BATCH_MAX), by)
    return released
  }

  async #release(listed: readonly ListedLetter[], by: Actor): Promise<number> {
    const act = { action: 'release', by, atMs: this.#clock.nowMs(), prefix: this.#prefix } as const
    const held = listed.filter(({ state }) => state.claim !== null)
    if (held.length === 0) return 0
    await this.#log.write(
      held.map(({ letter, state }) => releaseRecord(letter.id, state.claim ?? '')),
      held.map(({ letter, state }) => entryOf(letter, state, act)),
    )
    return held.length
  }

  /** Newest first, of all topics and groups. */
  audited(before?: number): AsyncIterable<AuditedAct> {
    return this.#log.audited(before)
  }

  /** Deletes the letters of a partition below an offset. */
  deleteBefore(topic: string, partition: number, offset: bigint): Promise<void> {
    return this.#log.deleteBefore(toDlqTopic(topic), partition, offset)
  }

  /** A topic without dead letters exists; a topic that was never created is misspelt. */
  async throwIfUnknown(topic: string): Promise<void> {
    const letters = toDlqTopic(topic)
    const jobs = letters.slice(0, -DLQ_SUFFIX.length)
    const found = await this.#log.partitions([letters, jobs])
    if ([...found.values()].some(({ length }) => length > 0)) return
    throw new MillraceError('ERR_JOB_UNKNOWN', `there is no topic '${jobs}' and no '${letters}'; check the spelling`)
  }
}

function placeId({ topic, partition, offset }: Coordinates): string {
  return `${topic}/${partition}/${offset}`
}

function placeOf(id: string): Coordinates {
  const [topic = '', partition = '', offset = ''] = id.split('/')
  return { topic, partition: Number(partition), offset: BigInt(offset) }
}

/** Letters that were there when the first page was read, so a replay that fails again is not replayed again. */
class TopicWalk implements LetterLocator {
  readonly #log: LetterLog
  readonly #letters: AsyncIterator<TopicLetter>

  constructor(log: LetterLog, topic: string) {
    this.#log = log
    this.#letters = lettersIn(log, topic)
  }

  async list({ limit }: DeadLetterFilter): Promise<readonly FoundLetter[]> {
    const book = await this.#log.states()
    const found: FoundLetter[] = []
    while (found.length < limit) {
      const { done, value: letter } = await this.#letters.next()
      if (done === true) break
      const state = book.of(letter.id)
      if (state.state === 'pending') found.push({ id: placeId(letter.at), letter, state })
    }
    return found
  }

  /** In any state: the act itself finds out whether the letter is still pending. */
  async find(ids: readonly string[]): Promise<readonly (FoundLetter | null)[]> {
    const letters = await lettersOf(this.#log, ids.map(placeOf))
    const book = await this.#log.states()
    const byId = new Map(letters.map((letter) => [placeId(letter.at), letter]))
    return ids.map((id) => {
      const letter = byId.get(id)
      return letter === undefined ? null : { id, letter, state: book.of(letter.id) }
    })
  }
}

async function* lettersIn(log: LetterLog, topic: string): AsyncGenerator<TopicLetter> {
  for await (const page of walkLetters(log, topic)) yield* page
}
