import type { DeadLetterFilter } from '../../../engine/dead-letters.ts'
import type { FoundLetter, LetterLocator } from '../dead-letters.ts'
import { type Coordinates, dlqTopicOf } from '../record.ts'
import { diedAtMs, jobIdOf, readLetter, type TopicLetter } from './letter.ts'
import type { LetterLog, PartitionRange } from './letter-log.ts'
import { isOpen, type LetterState, type StateBook } from './states.ts'
import { lettersOf } from './walk.ts'

/** What is kept in memory of a letter: enough to find it and to put it in order. */
export interface IndexedLetter {
  /** Its id, under which its state is kept. */
  readonly letter: string
  readonly jobId: string
  /** Where its last copy stands: older ones may be cut off sooner. */
  readonly at: Coordinates
  readonly diedAtMs: number
}

interface TopicIndex {
  readonly letters: Map<string, IndexedLetter>
  /** By partition, up to where it was read. */
  readonly readTo: Map<number, bigint>
}

const PAGE_MAX = 500

/**
 * Letters by topic, those of one group or all. A log cannot be asked for a job, so it is read once from its beginning and from
 * then on only where it has grown. Each failure counts once, however often it was written.
 */
export class LetterIndex {
  readonly #log: LetterLog
  readonly #group: string | null
  readonly #topics = new Map<string, TopicIndex>()
  #turn: Promise<unknown> = Promise.resolve()

  /** `group`: null for those of all groups. */
  constructor(log: LetterLog, group: string | null) {
    this.#log = log
    this.#group = group
  }

  /** All that had been written to these DLQ topics before the call. */
  of(topics: readonly string[]): Promise<ReadonlyMap<string, readonly IndexedLetter[]>> {
    const looking = this.#turn.then(() => this.#look(topics))
    this.#turn = looking.catch(() => {})
    return looking
  }

  async #look(topics: readonly string[]): Promise<ReadonlyMap<string, readonly IndexedLetter[]>> {
    const ranges = await this.#log.partitions(topics)
    for (const topic of topics) await this.#readOn(topic, ranges.get(topic) ?? [])
    return new Map(topics.map((topic) => [topic, [...(this.#topics.get(topic)?.letters.values() ?? [])]]))
  }

  async #readOn(topic: string, ranges: readonly PartitionRange[]): Promise<void> {
    const known = this.#topics.get(topic)
    const isAnother =
      ranges.length === 0 || ranges.some(({ partition, end }) => end < (known?.readTo.get(partition) ?? 0n))
    const index = known === undefined || isAnother ? { letters: new Map(), readTo: new Map() } : known
    this.#topics.set(topic, index)
    for (const range of ranges) {
      this.#cut(index, range)
      await this.#readPartition(topic, index, range)
    }
  }

  /** Forgets what was archived. */
  #cut({ letters, readTo }: TopicIndex, { partition, begin }: PartitionRange): void {
    if (begin === 0n || !readTo.has(partition)) return
    for (const [id, { at }] of letters) if (at.partition === partition && at.offset < begin) letters.delete(id)
  }

  async #readPartition(topic: string, index: TopicIndex, { partition, begin, end }: PartitionRange): Promise<void> {
    const readTo = index.readTo.get(partition) ?? 0n
    for (let from = readTo > begin ? readTo : begin; from < end; ) {
      const records = await this.#log.readRange(topic, partition, { from, to: end, max: PAGE_MAX })
      for (const record of records) this.#add(index, readLetter(record))
      from = (records.at(-1)?.offset ?? end - 1n) + 1n
      index.readTo.set(partition, from)
    }
  }

  /** What another program wrote may not say whose it is; then it concerns every group. */
  #add({ letters }: TopicIndex, letter: TopicLetter): void {
    const { consumer_group: group } = letter.envelope
    if (this.#group !== null && group !== this.#group && group !== '') return
    const { id, at } = letter
    letters.set(id, { letter: id, jobId: jobIdOf(letter), at, diedAtMs: diedAtMs(letter) })
  }
}

export interface GroupLettersParts {
  readonly log: LetterLog
  /** Null for those of all groups. */
  readonly group: string | null
  readonly prefix: string
  /** The topics of jobs that concern it. */
  topics(): Promise<readonly string[]>
}

interface Death {
  readonly diedAtMs: number
  readonly jobId: string
}

/** The letters of one group, or of all, by the ids of their jobs, in any of the topics. Newest first, as every engine lists them. */
export class GroupLetters implements LetterLocator {
  readonly #parts: GroupLettersParts
  readonly #index: LetterIndex

  constructor(parts: GroupLettersParts) {
    this.#parts = parts
    this.#index = new LetterIndex(parts.log, parts.group)
  }

  async list(filter: DeadLetterFilter): Promise<readonly FoundLetter[]> {
    const { type, sinceMs = Number.NEGATIVE_INFINITY, beforeMs = Number.POSITIVE_INFINITY, after, limit } = filter
    const topics = type === undefined ? await this.#parts.topics() : [this.#parts.prefix + type]
    const { letters, book } = await this.#look(topics)
    const found = letters
      .filter(({ letter, diedAtMs }) => isOpen(book.of(letter)) && diedAtMs >= sinceMs && diedAtMs < beforeMs)
      .sort(newestFirst)
      .filter((one) => after === undefined || newestFirst(one, { diedAtMs: after.completedAtMs, jobId: after.id }) > 0)
      .slice(0, limit)
    return this.#read(found, book)
  }

  async find(ids: readonly string[], states: readonly LetterState[]): Promise<readonly (FoundLetter | null)[]> {
    const { letters, book } = await this.#look(await this.#parts.topics())
    const byJob = Map.groupBy(letters, ({ jobId }) => jobId)
    const found = [...new Set(ids)].flatMap((id) => {
      const deaths = (byJob.get(id) ?? []).filter(({ letter }) => states.includes(book.of(letter).state))
      return deaths.sort(newestFirst).slice(0, 1)
    })
    const read = new Map((await this.#read(found, book)).map((one) => [one.id, one]))
    return ids.map((id) => read.get(id) ?? null)
  }

  /** The letters with these ids, of these topics of jobs. */
  async withIds(ids: ReadonlySet<string>, topics: ReadonlySet<string>): Promise<ReadonlyMap<string, FoundLetter>> {
    if (ids.size === 0) return new Map()
    const { letters, book } = await this.#look([...topics])
    const died = letters.filter(({ letter }) => ids.has(letter))
    return new Map((await this.#read(died, book)).map((found) => [found.letter.id, found]))
  }

  async #read(letters: readonly IndexedLetter[], book: StateBook): Promise<readonly FoundLetter[]> {
    const jobIds = new Map(letters.map(({ letter, jobId }) => [letter, jobId]))
    const places = letters.map(({ at }) => at)
    return (await lettersOf(this.#parts.log, places)).map((letter) => ({
      id: jobIds.get(letter.id) ?? '',
      letter,
      state: book.of(letter.id),
    }))
  }

  async #look(
    topics: readonly string[],
  ): Promise<{ readonly letters: readonly IndexedLetter[]; readonly book: StateBook }> {
    const { found, book } = await this.#lookAt(topics)
    return { letters: [...found.values()].flat(), book }
  }

  /** By topic of jobs: how many have died in all, and how many of those are unresolved. */
  async tally(
    topics: readonly string[],
  ): Promise<ReadonlyMap<string, { readonly died: number; readonly dead: number }>> {
    const { found, book } = await this.#lookAt(topics)
    return new Map(
      topics.map((topic) => {
        const letters = found.get(dlqTopicOf(topic)) ?? []
        return [topic, { died: letters.length, dead: letters.filter(({ letter }) => isOpen(book.of(letter))).length }]
      }),
    )
  }

  async #lookAt(topics: readonly string[]) {
    const [found, book] = await Promise.all([this.#index.of(topics.map(dlqTopicOf)), this.#parts.log.states()])
    return { found, book }
  }
}

function newestFirst(a: Death, b: Death): number {
  if (a.diedAtMs !== b.diedAtMs) return b.diedAtMs - a.diedAtMs
  if (a.jobId === b.jobId) return 0
  return a.jobId < b.jobId ? 1 : -1
}
