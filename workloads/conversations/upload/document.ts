import type { DatabaseSync } from 'node:sqlite'
import { z } from 'zod'
import { isMillraceError, NonRetryable, Postpone } from '../../../src/errors.ts'
import type { Sanitize } from '../sanitize/rule.ts'

const learningRow = z.object({
  conversation_id: z.string(),
  category: z.string(),
  title: z.string(),
  content: z.string(),
  confidence: z.number(),
  tags: z.string().transform((text) => z.array(z.string()).parse(JSON.parse(text))),
  created_at: z.string(),
})
type Learning = z.infer<typeof learningRow>

const LEARNING = `SELECT conversation_id, category, title, content, confidence, tags, created_at FROM learnings WHERE id = ?`
const OPEN_FINDINGS = `SELECT count(*) AS count FROM sanitization_log WHERE conversation_id = ? AND replacement IS NULL`
const UNVALIDATED = `SELECT count(*) AS count FROM messages WHERE conversation_id = ? AND validated_at IS NULL`

/** Validation is the most urgent job, so it is usually done within seconds. */
const VALIDATION_WAIT = '5s'

/**
 * What is published of a learning: JSON with sorted names and no blanks, so that the same learning always has the same
 * content id. It contains no id of the conversation, its messages or the learning.
 */
export function publishedDocument({
  category,
  confidence,
  content,
  created_at,
  tags,
  title,
}: Omit<Learning, 'conversation_id'>): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(JSON.stringify({ category, confidence, content, created_at, tags, title }))
}

/**
 * Reads a learning that may be published. Refused for good: one that was forgotten, one of a conversation with an open
 * finding, and one in which the rules find something now. While messages wait for their validation the job waits too.
 */
export function readPublishable(database: DatabaseSync, sanitize: Sanitize, learningId: string): Learning {
  const row = database.prepare(LEARNING).get(learningId)
  if (row === undefined)
    throw new NonRetryable(`no learning has the id ${learningId}: it was forgotten, or never existed`)
  const learning = learningRow.parse(row)
  const count = (sql: string): number => Number(database.prepare(sql).get(learning.conversation_id)?.count)
  const open = count(OPEN_FINDINGS)
  if (open > 0)
    throw new NonRetryable(
      `the conversation of learning ${learningId} has ${open} open findings; nothing was published`,
    )
  const { category, title, content, tags } = learning
  const found = [category, title, content, ...tags].flatMap((text) => sanitize(text).findings)
  if (found.length > 0) {
    const categories = [...new Set(found.map((finding) => finding.category))].join(', ')
    throw new NonRetryable(`the rules find ${categories} in learning ${learningId}; nothing was published`)
  }
  const unvalidated = count(UNVALIDATED)
  if (unvalidated > 0)
    throw new Postpone(VALIDATION_WAIT, `${unvalidated} messages of the conversation are not validated yet`)
  return learning
}

/** Whether the check of `readPublishable` passes now. */
export function isPublishable(check: () => void): boolean {
  try {
    check()
    return true
  } catch (error) {
    if (isMillraceError(error, 'ERR_NON_RETRYABLE', 'ERR_POSTPONED')) return false
    throw error
  }
}
