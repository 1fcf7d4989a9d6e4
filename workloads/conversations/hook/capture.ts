/** What the hook does with a message: sanitise it, and write it with its job in one transaction. */
import type { DatabaseSync } from 'node:sqlite'
import { newJobId } from '../../../src/job/job.ts'
import { toIso } from '../../../src/time/iso.ts'
import { SANITIZE_AI_VALIDATION } from '../jobs/contract.ts'
import type { Sanitize } from '../sanitize/rule.ts'
import { enqueueJob } from '../store/enqueue.ts'
import { snippetHash } from '../store/secret.ts'
import type { RawMessage, Role } from './input.ts'

/** Longer messages are cut. A model would be asked about all of it, and sanitising has to end in a fraction of a second. */
export const CONTENT_MAX = 1_000_000

/** What is sanitised beyond the cut, so that a secret across it is recognised as a whole. */
const BEYOND_CUT = 16_384

/** A message that may be stored: sanitised, with hashes instead of what was replaced. Also the form of a spool entry. */
export interface SanitizedMessage {
  readonly id: string
  readonly conversationId: string
  readonly role: Role
  readonly content: string
  readonly version: string
  readonly findings: readonly { readonly category: string; readonly hash: string; readonly replacement: string }[]
  /** How many characters were cut off the end. */
  readonly cut: number
  readonly at: string
}

export interface SanitizeParts {
  readonly sanitize: Sanitize
  /** Read only when something was found. */
  readonly secret: () => Uint8Array
  readonly nowMs: number
}

export function sanitizeMessage(message: RawMessage, { sanitize, secret, nowMs }: SanitizeParts): SanitizedMessage {
  // SQLite stores UTF-8, in which half a surrogate pair does not exist.
  const whole = message.content.toWellFormed()
  const isCut = whole.length > CONTENT_MAX
  const { text, findings, version } = sanitize(isCut ? whole.slice(0, CONTENT_MAX + BEYOND_CUT) : whole)
  const key = findings.length === 0 ? null : secret()
  return {
    id: newJobId(nowMs),
    conversationId: message.conversationId,
    role: message.role,
    content: isCut ? text.slice(0, Math.max(0, text.length - BEYOND_CUT)).toWellFormed() : text,
    version,
    findings: findings.map(({ category, replacement, snippet }) => ({
      category,
      hash: key === null ? '' : snippetHash(key, snippet),
      replacement,
    })),
    cut: isCut ? whole.length - CONTENT_MAX : 0,
    at: toIso(nowMs),
  }
}

/** A new message makes the conversation unvalidated again. Other keys of the metadata are kept. */
const WRITE_CONVERSATION = `INSERT INTO conversations (id, metadata, created_at, updated_at)
VALUES (:id, json_object('ai_validation_completed', json('false')), :at, :now)
ON CONFLICT (id) DO UPDATE SET updated_at = :now,
  metadata = json_set(metadata, '$.ai_validation_completed', json('false'))`

const COUNT_CUT = `UPDATE conversations
SET metadata = json_set(metadata, '$.cut_characters', coalesce(metadata ->> '$.cut_characters', 0) + :cut) WHERE id = :id`

const WRITE_MESSAGE = `INSERT INTO messages
(id, conversation_id, role, seq, content, sanitization_version, created_at)
SELECT :id, :conversation, :role, coalesce(max(seq), 0) + 1, :content, :version, :at
FROM messages WHERE conversation_id = :conversation`

const WRITE_FINDING = `INSERT INTO sanitization_log
(id, conversation_id, message_id, category, original_snippet_hash, replacement, detector, confidence, created_at)
VALUES (:id, :conversation, :message, :category, :hash, :replacement, 'rules', 1, :at)`

/** Writes the message, what was found in it, and its job. Call inside a write transaction. */
export function writeMessage(
  database: DatabaseSync,
  message: SanitizedMessage,
  nowMs: number,
): { readonly jobId: string; readonly enqueued: boolean } {
  const { id, conversationId: conversation, role, content, version, findings, cut, at } = message
  database.prepare(WRITE_CONVERSATION).run({ id: conversation, at, now: toIso(nowMs) })
  if (cut > 0) database.prepare(COUNT_CUT).run({ id: conversation, cut })
  database.prepare(WRITE_MESSAGE).run({ id, conversation, role, content, version, at })
  if (findings.length > 0) {
    const write = database.prepare(WRITE_FINDING)
    for (const { category, hash, replacement } of findings) {
      write.run({ id: newJobId(nowMs), conversation, message: id, category, hash, replacement, at })
    }
  }
  const payload = { conversation_id: conversation, message_ids: [id], sanitization_version: version }
  const job = enqueueJob(database, { type: SANITIZE_AI_VALIDATION, about: conversation, payload }, nowMs)
  return { jobId: job.id, enqueued: job.enqueued }
}
