import { readLetter, type TopicLetter } from './letter.ts'
import type { DeadLetterLog, PartitionRange } from './log.ts'
import type { Coordinates } from './record.ts'
import { diedAtMs, jobIdOf } from './view.ts'

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
  readonly #log: DeadLetterLog
  readonly #group: string | null
  readonly #topics = new Map<string, TopicIndex>()
  #turn: Promise<unknown> = Promise.resolve()

  /** `group`: null for those of all groups. */
  constructor(log: DeadLetterLog, group: string | null) {
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
