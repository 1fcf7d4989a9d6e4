/** A record as these modules see it: bytes and coordinates, whatever client fetched it. */
import { isUtf8 } from 'node:buffer'

/** As a producer wrote them: a name may occur twice, and a value may be null. */
export type Header = readonly [name: string, value: Buffer | null]

export interface RecordHeaders extends Iterable<Header> {
  /** The last of that name, as in Spring. Undefined also where it is null. */
  get(name: string): Buffer | undefined
  /** Which of these there are, a bit for each by its place, where that can be had in one go. */
  found?(names: HeaderNames): number
  /** As `headerText` of the name at that place, where that can be had without the bytes in between. */
  textAt?(names: HeaderNames, place: number): string | null
}

/** A map would keep one of two headers with the same name. */
export class HeaderList implements RecordHeaders {
  readonly #headers: readonly Header[]

  constructor(headers: Iterable<Header>) {
    this.#headers = [...headers]
  }

  get(name: string): Buffer | undefined {
    return this.#headers.findLast(([written]) => written === name)?.[1] ?? undefined
  }

  [Symbol.iterator](): Iterator<Header> {
    return this.#headers.values()
  }
}

export interface PartitionName {
  readonly topic: string
  readonly partition: number
}

export function nameOf({ topic, partition }: PartitionName): string {
  return `${topic}/${partition}`
}

export interface Coordinates {
  readonly topic: string
  readonly partition: number
  readonly offset: bigint
}

export interface LogRecord extends Coordinates {
  readonly key: Buffer | null
  /** Null: a tombstone. */
  readonly value: Buffer | null
  /** As `textOf` the value, `'null'` without one, where that can be had without the bytes in between. */
  valueText?(): string | null
  readonly headers: RecordHeaders
  readonly timestampMs: number
  /** As `coordinatesOf` makes it, where that can be had quicker. */
  readonly coordinates?: string
  /** Of a letter that was written in parts: where the first stands, and whether some of them are deleted. */
  readonly parts?: { readonly begin: bigint; readonly isTorn: boolean }
}

/** What is to be written. Without a partition the producer chooses by the key. */
export interface NewRecord {
  readonly topic: string
  readonly partition?: number
  readonly key: Buffer | null
  readonly value: Buffer | null
  readonly headers: RecordHeaders
}

export const DLQ_SUFFIX = '.dlq'

/** Where the dead letters of a topic are. */
export function dlqTopicOf(topic: string): string {
  return topic + DLQ_SUFFIX
}

/** Both spellings name the same dead letters: with the suffix and without it. */
export function toDlqTopic(topic: string): string {
  return topic.endsWith(DLQ_SUFFIX) ? topic : dlqTopicOf(topic)
}

/**
 * Names a dead letter by what failed and for whom. A crash between writing a letter and settling its offset writes it
 * again, under the same name; two groups that fail on one record write two letters. No topic has a slash. A topic that is
 * deleted and created again has other records at the same places; letters that do not say of which it was have no id of it.
 */
export function letterId({ topic, partition, offset }: Coordinates, group: string, topicId: string | null): string {
  return `${topic}/${partition}/${offset}/${group}${topicId === null ? '' : `/${topicId}`}`
}

const ASCII_END = 0x80
/** What stands for bytes that are no text, and may also be text itself. */
const REPLACEMENT = '\ufffd'

/** Null for bytes that are no text: decoding them anyhow would lose what they were. */
export function textOf(bytes: Buffer, from = 0, to = bytes.length): string | null {
  const only = to - from === 1 ? bytes[from] : undefined
  // Digits, mostly; asking the decoder for them takes longer than all the rest.
  if (only !== undefined && only < ASCII_END) return String.fromCharCode(only)
  // UTF-8, which Node need not look up when it is not named.
  const text = bytes.toString(undefined, from, to)
  return text.includes(REPLACEMENT) && !isUtf8(bytes.subarray(from, to)) ? null : text
}

/** Null for what is no text, and for what is not there. */
export function headerText(headers: RecordHeaders, name: string): string | null {
  const bytes = headers.get(name)
  return bytes === undefined ? null : textOf(bytes)
}

/** Names that are looked for together, so that the headers of a record are gone through once for all of them. */
export class HeaderNames {
  readonly names: readonly string[]
  /** By the length of the name, where in the list such names stand. */
  readonly #byLength: readonly (readonly number[])[]

  /** They are ASCII: as many bytes as letters. */
  constructor(names: readonly string[]) {
    this.names = names
    const longest = Math.max(...names.map(({ length }) => length))
    this.#byLength = Array.from({ length: longest + 1 }, (_, length) =>
      names.flatMap((name, index) => (name.length === length ? [index] : [])),
    )
  }

  /** The place of the name that these bytes are; -1 for none. */
  placeOf(bytes: Buffer, at: number, length: number): number {
    const candidates = this.#byLength[length]
    if (candidates === undefined) return -1
    for (let index = 0; index < candidates.length; index += 1) {
      const place = candidates[index] ?? -1
      if (isAt(bytes, at, this.names[place] ?? '')) return place
    }
    return -1
  }

  /** Whether these bytes are the name at that place. */
  isAt(place: number, bytes: Buffer, at: number, length: number): boolean {
    const name = this.names[place]
    return name?.length === length && isAt(bytes, at, name)
  }
}

/** From behind, because our names begin alike. */
function isAt(bytes: Buffer, at: number, name: string): boolean {
  for (let index = name.length - 1; index >= 0; index -= 1) {
    if (bytes[at + index] !== name.charCodeAt(index)) return false
  }
  return true
}
