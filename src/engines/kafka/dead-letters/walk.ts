import type { Coordinates } from '../record.ts'
import { readLetter, type TopicLetter } from './letter.ts'
import type { LetterLog } from './letter-log.ts'
import type { StateBook, StateView } from './states.ts'

const PAGE_MAX = 100

export interface ListedLetter {
  readonly letter: TopicLetter
  readonly state: StateView
}

/**
 * The letters of a DLQ topic that were there when the walk began, by partition and offset, each failure once. What dies
 * during the walk is not included, so a replay that fails again is not replayed by the same walk.
 */
export async function* walkLetters(
  log: LetterLog,
  topic: string,
  after?: Pick<Coordinates, 'partition' | 'offset'>,
): AsyncGenerator<readonly TopicLetter[]> {
  const seen = new Set<string>()
  const ranges = ((await log.partitions([topic])).get(topic) ?? []).toSorted((a, b) => a.partition - b.partition)
  for (const { partition, begin, end } of ranges) {
    if (after !== undefined && partition < after.partition) continue
    let from = after?.partition === partition && after.offset >= begin ? after.offset + 1n : begin
    while (from < end) {
      const records = await log.readRange(topic, partition, { from, to: end, max: PAGE_MAX })
      const last = records.at(-1)
      if (last === undefined) break
      from = last.offset + 1n
      const letters = records.map(readLetter).filter(({ id }) => !seen.has(id) && seen.add(id))
      if (letters.length > 0) yield letters
    }
  }
}

/** The letters and their states, as one look at the states found them. */
export async function* walkListed(
  log: LetterLog,
  topic: string,
  after?: Pick<Coordinates, 'partition' | 'offset'>,
): AsyncGenerator<ListedLetter> {
  const book: StateBook = await log.states()
  for await (const letters of walkLetters(log, topic, after)) {
    for (const letter of letters) yield { letter, state: book.of(letter.id) }
  }
}

/** Every letter at an offset of a DLQ topic: one for each partition that has it. */
export async function lettersAt(
  log: LetterLog,
  topic: string,
  offset: bigint,
  partition?: number,
): Promise<readonly TopicLetter[]> {
  const ranges = ((await log.partitions([topic])).get(topic) ?? []).filter(
    (one) => (partition === undefined || one.partition === partition) && one.begin <= offset && offset < one.end,
  )
  const found = await Promise.all(
    ranges.map((one) => log.readRange(topic, one.partition, { from: offset, to: offset + 1n, max: 1 })),
  )
  return found.flat().map(readLetter)
}

/** The letters at these places, in the order given; without those that were cut off meanwhile. */
export async function lettersOf(log: LetterLog, places: readonly Coordinates[]): Promise<readonly TopicLetter[]> {
  const found = new Map<string, TopicLetter>()
  const byPartition = Map.groupBy(places, ({ topic, partition }) => `${topic}/${partition}`)
  for (const wanted of byPartition.values()) {
    const sorted = wanted.toSorted((a, b) => (a.offset < b.offset ? -1 : 1))
    const to = (sorted.at(-1)?.offset ?? 0n) + 1n
    let readTo = 0n
    for (const { topic, partition, offset } of sorted) {
      if (offset < readTo) continue
      // Neighbours are likely to be wanted too, and come with it.
      const records = await log.readRange(topic, partition, { from: offset, to, max: PAGE_MAX })
      for (const record of records) found.set(placeName(record), readLetter(record))
      readTo = (records.at(-1)?.offset ?? offset) + 1n
    }
  }
  return places.flatMap((place) => found.get(placeName(place)) ?? [])
}

function placeName({ topic, partition, offset }: Coordinates): string {
  return `${topic}/${partition}/${offset}`
}
