/** A record as these modules see it: bytes and coordinates, whatever client fetched it. */
import { isUtf8 } from 'node:buffer'

/** A name that a producer wrote twice has its last value, as in Spring and in the client that we use. */
export interface RecordHeaders extends Iterable<readonly [string, Buffer]> {
  get(name: string): Buffer | undefined
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
  readonly headers: RecordHeaders
  readonly timestampMs: number
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

/** Both spellings name the same dead letters: with the suffix and without it (X147). */
export function toDlqTopic(topic: string): string {
  return topic.endsWith(DLQ_SUFFIX) ? topic : dlqTopicOf(topic)
}

/**
 * Names a dead letter by what failed and for whom. A crash between writing a letter and settling its offset writes it
 * again, under the same name; two groups that fail on one record write two letters. No topic has a slash.
 */
export function letterId({ topic, partition, offset }: Coordinates, group: string): string {
  return `${topic}/${partition}/${offset}/${group}`
}

/** What stands for bytes that are no text, and may also be text itself. */
const REPLACEMENT = '\ufffd'

/** Null for bytes that are no text: decoding them anyhow would lose what they were. */
export function textOf(bytes: Buffer): string | null {
  const text = bytes.toString('utf8')
  return text.includes(REPLACEMENT) && !isUtf8(bytes) ? null : text
}
