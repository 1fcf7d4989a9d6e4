/** How the messages of a conversation are divided into calls of the model. */
import type { DatabaseSync } from 'node:sqlite'
import type { ModelMessage } from '../models/model.ts'

/** The most messages of one call, and of one transaction. */
export const PAGE_MESSAGES = 500
/** About 30 000 tokens: any model in use takes that, and its answer comes within the timeout. */
const CALL_CHARACTERS = 100_000
/** Pieces of a long message overlap by this much, so that no name is cut in two unseen. */
const OVERLAP_CHARACTERS = 500

const IS_UNVALIDATED = `SELECT 1 AS found FROM messages WHERE conversation_id = ? AND validated_at IS NULL LIMIT 1`

export function isUnvalidated(database: DatabaseSync, conversation: string): boolean {
  return database.prepare(IS_UNVALIDATED).get(conversation) !== undefined
}

/** The first messages that fit into one call; at least one, however long it is. */
export function withinPage<Message extends ModelMessage>(messages: readonly Message[]): readonly Message[] {
  let characters = 0
  const tooMany = messages.findIndex(({ content }, index) => {
    characters += content.length
    return index >= PAGE_MESSAGES || (characters > CALL_CHARACTERS && index > 0)
  })
  return tooMany < 0 ? messages : messages.slice(0, tooMany)
}

/** One call, or several for a message that is too long for one: each has a piece of it under the same id. */
export function callsOf(page: readonly ModelMessage[]): readonly (readonly ModelMessage[])[] {
  const [first, ...others] = page
  if (first === undefined || others.length > 0 || first.content.length <= CALL_CHARACTERS) return [page]
  const pieces: (readonly ModelMessage[])[] = []
  for (
    let start = 0;
    start + OVERLAP_CHARACTERS < first.content.length;
    start += CALL_CHARACTERS - OVERLAP_CHARACTERS
  ) {
    pieces.push([{ ...first, content: first.content.slice(start, start + CALL_CHARACTERS).toWellFormed() }])
  }
  return pieces
}
