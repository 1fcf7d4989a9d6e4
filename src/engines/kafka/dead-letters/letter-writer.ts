import { EngineError } from '../../../errors.ts'
import { configsOf, numberOf } from '../configs.ts'
import type { Admin, Client } from '../driver.ts'
import { BATCH_BYTES_MAX, bytesOf, type RecordProducer } from '../producer.ts'
import type { NewRecord } from '../record.ts'
import { type Topics, writeToTopics } from '../topics.ts'
import { partsOf, writeParts } from './parts.ts'

/** What became of letters. Those that are not named are acknowledged by all replicas. */
export interface WrittenLetters {
  readonly refused: ReadonlyMap<NewRecord, unknown>
  /** What an operator must hear of: letters that were written, and not as they should have been. */
  readonly alarms: readonly EngineError[]
}

interface LetterWriterParts {
  readonly client: Client
  readonly admin: Admin
  readonly producer: RecordProducer
  readonly topics: Topics
}

/**
 * Writes dead letters. One that cannot be written blocks only its own record; one that is larger than its
 * topic takes goes in parts.
 */
export class LetterWriter {
  readonly #parts: LetterWriterParts

  constructor(parts: LetterWriterParts) {
    this.#parts = parts
  }

  async write(letters: readonly NewRecord[]): Promise<WrittenLetters> {
    const refused = new Map<NewRecord, unknown>()
    const alarms: EngineError[] = []
    for (const some of batchesOf(letters)) {
      const error = await this.#send(some).catch((error: unknown) => error)
      if (error === undefined) continue
      if (!this.#parts.producer.isTooLarge(error)) {
        for (const letter of some) refused.set(letter, error)
        continue
      }
      for (const letter of some) {
        try {
          alarms.push(...(await this.#writeOne(letter)))
        } catch (error) {
          refused.set(letter, error)
        }
      }
    }
    return { refused, alarms }
  }

  async #send(letters: readonly NewRecord[]): Promise<void> {
    const { topics, producer } = this.#parts
    await writeToTopics(topics, letters, 'dead-letters', () => producer.sendAlone(letters))
  }

  /** Together they were too large; by itself each may fit. */
  async #writeOne(letter: NewRecord): Promise<readonly EngineError[]> {
    try {
      await this.#send([letter])
      return []
    } catch (error) {
      if (!this.#parts.producer.isTooLarge(error)) throw error
      return [await this.#writeInParts(letter, error)]
    }
  }

  async #writeInParts(letter: NewRecord, error: unknown): Promise<EngineError> {
    const { producer } = this.#parts
    const bytesMax = await this.#bytesMaxOf(letter.topic)
    const parts = bytesMax === null ? null : partsOf(letter, bytesMax)
    if (parts === null) throw error
    await writeParts(letter, parts, async (record) => {
      const [place] = await producer.sendAlone([record])
      // A repetition that the broker knew already is answered without its place.
      if (place === undefined || place.offset < 0n)
        throw new EngineError('ERR_STORAGE_BUSY', `Kafka did not say where a part of a dead letter stands`)
      return place
    })
    return new EngineError(
      'ERR_STORAGE_FAILED',
      `the dead letter ${letter.key} has ${bytesOf(letter)} bytes and '${letter.topic}' takes ${bytesMax}: it was written in ${parts.length} parts, which other programs cannot read; raise max.message.bytes of the topic`,
    )
  }

  async #bytesMaxOf(topic: string): Promise<number | null> {
    const { admin, client } = this.#parts
    const found = await configsOf(admin, client.ConfigResourceTypes.TOPIC, [topic], ['max.message.bytes'])
    return numberOf(found.get(topic) ?? new Map(), 'max.message.bytes')
  }
}

/** By topic, and no more at once than a broker takes by default. */
function batchesOf(letters: readonly NewRecord[]): readonly (readonly NewRecord[])[] {
  return [...Map.groupBy(letters, ({ topic }) => topic).values()].flatMap((ofTopic) => {
    const batches: NewRecord[][] = []
    let bytes = Number.POSITIVE_INFINITY
    for (const letter of ofTopic) {
      bytes += bytesOf(letter)
      if (bytes > BATCH_BYTES_MAX) {
        batches.push([])
        bytes = bytesOf(letter)
      }
      batches.at(-1)?.push(letter)
    }
    return batches
  })
}
