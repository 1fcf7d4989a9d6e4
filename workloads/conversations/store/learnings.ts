import type { DatabaseSync } from 'node:sqlite'
import { z } from 'zod'
import { checkListLimit } from '../../../src/job/list-limit.ts'
import { phrasesOf } from '../../database/full-text.ts'

const texts = z.string().transform((text) => z.array(z.string()).parse(JSON.parse(text)))

const learningRow = z.object({
  id: z.string(),
  conversation_id: z.string(),
  category: z.string(),
  title: z.string(),
  content: z.string(),
  confidence: z.number(),
  tags: texts,
  dedupe_hash: z.string(),
  source_message_ids: texts,
  created_at: z.string(),
})

/** A row of `learnings`, with its tags and sources as lists. */
export type Learning = z.infer<typeof learningRow>

const BY_ID = 'SELECT * FROM learnings WHERE id = ?'
const BY_CONVERSATION = 'SELECT * FROM learnings WHERE conversation_id = ? ORDER BY id'
const BY_WORDS = `SELECT learnings.* FROM learnings_fts JOIN learnings ON learnings.rowid = learnings_fts.rowid
WHERE learnings_fts MATCH ? ORDER BY learnings_fts.rank LIMIT ?`

/** What was learnt from conversations. Synchronous, on an open database of the pipeline. */
export class LearningRepository {
  readonly #database: DatabaseSync

  constructor(database: DatabaseSync) {
    this.#database = database
  }

  findById(id: string): Learning | null {
    const row = this.#database.prepare(BY_ID).get(id)
    return row === undefined ? null : learningRow.parse(row)
  }

  /** Oldest first. */
  findByConversation(conversationId: string): readonly Learning[] {
    return this.#database
      .prepare(BY_CONVERSATION)
      .all(conversationId)
      .map((row) => learningRow.parse(row))
  }

  /**
   * Those whose title or content has all the words, best match first. `word*` matches the start of a word. Any text is a valid
   * query; without a word it finds nothing.
   */
  search(query: string, limit = 20): readonly Learning[] {
    const match = toMatch(query)
    if (match === '') return []
    return this.#database
      .prepare(BY_WORDS)
      .all(match, checkListLimit(limit))
      .map((row) => learningRow.parse(row))
  }
}

export function toMatch(query: string): string {
  return phrasesOf(query).join(' ')
}
