/** How the messages of a conversation are divided into pages: one transaction and one question to the model each. */
import type { DatabaseSync } from 'node:sqlite'
import { Postpone } from '../../../src/errors.ts'
import type { Clock } from '../../../src/time/clock.ts'
import type { ModelMessage } from '../models/model.ts'

/** The most messages of one page. */
export const PAGE_MESSAGES = 500
/** About 30 000 tokens. What is done is kept page by page, so a page must fit well into the timeout of the job. */
const PAGE_CHARACTERS = 100_000

/** Well below the timeout of the jobs. */
const RUN_MS = 60_000

/**
 * Call between two pages. Gives the job back after a minute, without using an attempt: its timeout would count as a failure
 * although every page is kept, and messages that keep arriving would hold the slot for ever.
 */
export function turnsOf(clock: Clock): () => void {
  const startedMs = clock.monotonicMs()
  return () => {
    if (clock.monotonicMs() - startedMs >= RUN_MS) throw new Postpone('1s', 'there are more messages; the rest follows')
  }
}

const IS_UNVALIDATED = `SELECT 1 AS found FROM messages WHERE conversation_id = ? AND validated_at IS NULL LIMIT 1`

export function isUnvalidated(database: DatabaseSync, conversation: string): boolean {
  return database.prepare(IS_UNVALIDATED).get(conversation) !== undefined
}

export interface StoredMessage extends ModelMessage {
  /** Its place in the conversation. */
  readonly seq: number
}

/**
 * The first messages of a query that fit into one page; at least one, however long it is: the model divides it. Rows are read one
 * by one, because 500 messages can be 500 MB.
 */
export function readPage(
  database: DatabaseSync,
  sql: string,
  ...parameters: readonly (string | number)[]
): readonly StoredMessage[] {
  const page: StoredMessage[] = []
  let characters = 0
  for (const { id, role, content, seq } of database.prepare(sql).iterate(...parameters)) {
    const message = { id: String(id), role: String(role), content: String(content), seq: Number(seq) }
    characters += message.content.length
    if (page.length === PAGE_MESSAGES || (characters > PAGE_CHARACTERS && page.length > 0)) break
    page.push(message)
  }
  return page
}

/** Messages as a model gets them. */
export function forModel(messages: readonly StoredMessage[]): readonly ModelMessage[] {
  return messages.map(({ id, role, content }) => ({ id, role, content }))
}
