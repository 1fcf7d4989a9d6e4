/** How the messages of a conversation are divided into pages: one transaction and one question to the model each. */
import type { DatabaseSync } from 'node:sqlite'
import type { ModelMessage } from '../models/model.ts'

/** The most messages of one page. */
export const PAGE_MESSAGES = 500
/** About 30 000 tokens. What is done is kept page by page, so a page must fit well into the timeout of the job. */
const PAGE_CHARACTERS = 100_000

const IS_UNVALIDATED = `SELECT 1 AS found FROM messages WHERE conversation_id = ? AND validated_at IS NULL LIMIT 1`

export function isUnvalidated(database: DatabaseSync, conversation: string): boolean {
  return database.prepare(IS_UNVALIDATED).get(conversation) !== undefined
}

/** The first messages that fit into one page; at least one, however long it is: the model divides it. */
export function withinPage<Message extends ModelMessage>(messages: readonly Message[]): readonly Message[] {
  let characters = 0
  const tooMany = messages.findIndex(({ content }, index) => {
    characters += content.length
    return index >= PAGE_MESSAGES || (characters > PAGE_CHARACTERS && index > 0)
  })
  return tooMany < 0 ? messages : messages.slice(0, tooMany)
}
