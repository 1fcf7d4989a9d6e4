/** The handler of sanitize_ai_validation: asks a model for personal data that the rules missed, and replaces it. */
import type { DatabaseSync } from 'node:sqlite'
import { NonRetryable } from '../../../src/errors.ts'
import type { Handler, JobContext } from '../../../src/job/definition.ts'
import { newJobId } from '../../../src/job/job.ts'
import { toIso } from '../../../src/time/iso.ts'
import type { ModelFinding, ModelMessage } from '../models/model.ts'
import type { PipelineParts } from '../options.ts'
import { emptyWal, inTransaction } from '../store/database.ts'
import { enqueueJob } from '../store/enqueue.ts'
import { snippetHash } from '../store/secret.ts'
import { EXTRACT_LEARNING } from './contract.ts'
import { answerOf, findingsAnswer } from './model-answer.ts'
import { forModel, isUnvalidated, PAGE_MESSAGES, readPage, type StoredMessage, turnsOf } from './pages.ts'
import type { ExtractPayload, SanitizePayload } from './payloads.ts'
import { isPlaceholder, replaceFound, storedCategory } from './replace.ts'

export type ValidationResult =
  | { readonly success: true; readonly findings: number }
  | { readonly skipped: true; readonly reason: 'already-validated' | 'forgotten' }

const READ_MARKER = `
SELECT json_extract(metadata, '$.ai_validation_completed') IS 1 AS isMarked FROM conversations WHERE id = ?`

const READ_PAGE = `SELECT id, role, content, seq FROM messages
WHERE conversation_id = ? AND validated_at IS NULL ORDER BY seq LIMIT ${PAGE_MESSAGES}`

const COUNT_FOREIGN = `SELECT count(*) AS count FROM json_each(:ids) AS named
WHERE NOT EXISTS (SELECT 1 FROM messages WHERE id = named.value AND conversation_id = :conversation)`

/** Compared here and not in SQL: text with a NUL or broken UTF-8 would never be equal there. */
const READ_AGAIN = `SELECT content FROM messages WHERE id = ? AND conversation_id = ? AND validated_at IS NULL`

const VALIDATE = `
UPDATE messages SET content = :text, sanitization_version = :version, validated_at = :now WHERE id = :id`

const INSERT_FINDING = `INSERT INTO sanitization_log
(id, conversation_id, message_id, category, original_snippet_hash, replacement, detector, confidence, created_at)
VALUES (:id, :conversation, :message, :category, :hash, :replacement, :detector, :confidence, :now)`

/** Another process may have changed other keys of the metadata since. */
const MARK = `
UPDATE conversations SET updated_at = :now,
  metadata = json_set(metadata, '$.ai_validation_completed', json('true'), '$.ai_validation_timestamp', :now)
WHERE id = :conversation`

/**
 * Validates every message of the conversation that is not validated yet, in pages. Each page is one transaction, so a job that is
 * killed goes on where it stopped. The last one also sets the marker and enqueues extract_learning.
 */
export function sanitizeAiValidation(parts: PipelineParts): Handler<SanitizePayload, ValidationResult> {
  return async (context) => {
    const { conversation_id: conversation, message_ids: ids } = context.payload
    const { database } = parts
    const isMarked = markerOf(database, conversation)
    if (isMarked === null) {
      throw new NonRetryable(
        `conversation ${conversation} does not exist; it was forgotten, or the job belongs to another database`,
      )
    }
    if (isMarked && !isUnvalidated(database, conversation)) return { skipped: true, reason: 'already-validated' }
    logForeign(parts, context, ids)
    const betweenPages = turnsOf(parts.clock)
    let findings = 0
    for (;;) {
      const page = readPage(database, READ_PAGE, conversation)
      const found = Map.groupBy(page.length === 0 ? [] : await ask(parts, context, page), (one) => one.message_id)
      context.signal.throwIfAborted()
      // Before the transaction: rules and replacements can take longer than the hook waits for the lock.
      const cleanedPage = page.map((message) => ({ message, ...cleaned(parts, message, found.get(message.id) ?? []) }))
      const written = inTransaction(database, () => writePage(parts, conversation, cleanedPage))
      if (written === null) return { skipped: true, reason: 'forgotten' }
      findings += written.findings
      // The log still has the messages as they were.
      if (written.findings > 0 && !emptyWal(database)) {
        context.log.warn('Another process reads the database; replaced text is still in its write-ahead log')
      }
      report(context, written, page.length)
      if (!written.hasMore) return { success: true, findings }
      betweenPages()
    }
  }
}

/** Null when there is no such conversation. */
function markerOf(database: DatabaseSync, conversation: string): boolean | null {
  const row = database.prepare(READ_MARKER).get(conversation)
  return row === undefined ? null : row.isMarked === 1
}

/** The payload can name anything; only messages of its own conversation are validated. */
function logForeign(
  { database }: PipelineParts,
  { payload, log }: JobContext<SanitizePayload>,
  ids: readonly string[],
) {
  const conversation = payload.conversation_id
  const count = Number(database.prepare(COUNT_FOREIGN).get({ ids: JSON.stringify(ids), conversation })?.count ?? 0)
  if (count === 0) return
  log.warn('Messages that are not of the conversation were ignored', { conversation_id: conversation, count })
}

async function ask(
  { model, fetch }: PipelineParts,
  { signal, log }: JobContext<SanitizePayload>,
  page: readonly StoredMessage[],
): Promise<readonly ModelFinding[]> {
  const { items, usage } = await answerOf(model.name, findingsAnswer, () =>
    model.findPersonalData(forModel(page), { signal, fetch }),
  )
  const given = new Set(page.map(({ id }) => id))
  // A finding that belongs to no message could not be replaced, and ignoring it would publish what was found.
  if (items.some(({ message_id: id }) => !given.has(id))) {
    throw new Error(`the model '${model.name}' named a message that it was not given; it is asked again`)
  }
  log.debug('Model asked for personal data', { model: model.name, messages: page.length, ...usage })
  return items
}

interface Written {
  readonly validated: number
  /** Rows of sanitization_log. */
  readonly findings: number
  /** Findings whose snippet is not in its message. They stop uploads. */
  readonly open: number
  readonly hasMore: boolean
}

type CleanedMessage = ReturnType<typeof cleaned> & { readonly message: StoredMessage }

/** In a transaction. Null when the conversation was forgotten meanwhile. */
function writePage(parts: PipelineParts, conversation: string, page: readonly CleanedMessage[]): Written | null {
  const { database, clock } = parts
  const isMarked = markerOf(database, conversation)
  if (isMarked === null) return null
  const nowMs = clock.nowMs()
  let [validated, findings, open] = [0, 0, 0]
  for (const { message, text, version, rows } of page) {
    // It changed, or another job validated it. What changed is read again with the next page.
    if (database.prepare(READ_AGAIN).get(message.id, conversation)?.content !== message.content) continue
    database.prepare(VALIDATE).run({ id: message.id, text, version, now: toIso(nowMs) })
    validated += 1
    findings += rows.length
    open += rows.filter(({ replacement }) => replacement === null).length
    for (const row of rows) {
      const about = { id: newJobId(nowMs), conversation, message: message.id, now: toIso(nowMs) }
      database.prepare(INSERT_FINDING).run({ ...about, ...row })
    }
  }
  const hasMore = isUnvalidated(database, conversation)
  if (!hasMore && (!isMarked || validated > 0)) finish(parts, conversation, nowMs)
  return { validated, findings, open, hasMore }
}

/** The message as it will be stored, and the rows of its findings. */
function cleaned({ sanitize, secret }: PipelineParts, { content }: ModelMessage, own: readonly ModelFinding[]) {
  const snippets = own.map(({ snippet }) => snippet)
  const distinct = new Map(own.map((finding) => [finding.snippet, finding]))
  const named = [...distinct.values()]
    .filter(({ snippet }) => !isPlaceholder(snippet))
    .map((finding) => ({ ...finding, category: storedCategory(finding.category, snippets) }))
  const { text: replaced, replacements } = replaceFound(content, named)
  // The rules may have been extended since the message was written.
  const { text, version, findings } = sanitize(replaced)
  const hash = (snippet: string): string => snippetHash(secret, snippet)
  const rows = [
    ...replacements.map(({ finding: { snippet, category, confidence }, replacement }) => ({
      ...{ category, hash: hash(snippet), replacement, detector: 'ai', confidence },
    })),
    ...findings.map(({ snippet, category, replacement }) => ({
      ...{ category, hash: hash(snippet), replacement, detector: 'rules', confidence: 1 },
    })),
  ]
  return { text, version, rows }
}

function finish({ database, extract }: PipelineParts, conversation: string, nowMs: number): void {
  database.prepare(MARK).run({ conversation, now: toIso(nowMs) })
  const payload: ExtractPayload = {
    conversation_id: conversation,
    min_confidence: extract.minConfidence,
    categories: [...extract.categories],
  }
  enqueueJob(database, { type: EXTRACT_LEARNING, about: conversation, payload }, nowMs)
}

function report({ payload, log }: JobContext<SanitizePayload>, written: Written, read: number): void {
  const fields = { conversation_id: payload.conversation_id, ...written, changed_meanwhile: read - written.validated }
  if (written.open > 0) log.warn('Messages validated; some findings are not in their message and stop uploads', fields)
  else log.info('Messages validated', fields)
}
