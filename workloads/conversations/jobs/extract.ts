/** The handler of extract_learning: asks a model what is worth keeping of a validated conversation. */
import { createHash } from 'node:crypto'
import type { DatabaseSync } from 'node:sqlite'
import { NonRetryable } from '../../../src/errors.ts'
import type { Handler, JobContext } from '../../../src/job/definition.ts'
import { newJobId } from '../../../src/job/job.ts'
import { toIso } from '../../../src/time/iso.ts'
import { shownEndpoint } from '../../language-models/approved-fetch.ts'
import type { ModelLearning } from '../models/model.ts'
import type { PipelineParts, UploadSettings } from '../options.ts'
import { inTransaction } from '../store/database.ts'
import { enqueueJob } from '../store/enqueue.ts'
import { MINE_UPLOAD } from './contract.ts'
import { answerOf, learningsAnswer } from './model-answer.ts'
import { forModel, PAGE_MESSAGES, readPage, type StoredMessage, turnsOf } from './pages.ts'
import type { ExtractPayload, UploadPayload } from './payloads.ts'

export type ExtractionResult =
  | {
      readonly success: true
      /** New rows. */
      readonly learnings: number
      /** Known already, from this or another conversation. */
      readonly duplicates: number
      /** Below the threshold, of another category, or not from the new messages. */
      readonly dropped: number
    }
  | { readonly skipped: true; readonly reason: 'not-validated' | 'already-extracted' | 'forgotten' }

/** Earlier messages that the model may read to understand the new ones. */
const CONTEXT_MESSAGES = 10

const READ_STATE = `
SELECT json_extract(metadata, '$.ai_validation_completed') IS 1 AS isMarked,
  json_extract(metadata, '$.extracted_seq') AS extractedSeq,
  (SELECT max(seq) FROM messages WHERE conversation_id = conversations.id) AS lastSeq,
  EXISTS (SELECT 1 FROM messages WHERE conversation_id = conversations.id AND validated_at IS NULL) AS hasUnvalidated,
  EXISTS (SELECT 1 FROM sanitization_log WHERE conversation_id = conversations.id AND replacement IS NULL) AS hasOpen
FROM conversations WHERE id = ?`

const READ_PAGE = `SELECT id, role, content, seq FROM messages
WHERE conversation_id = ? AND seq > ? AND seq <= ? ORDER BY seq LIMIT ${PAGE_MESSAGES}`

const READ_CONTEXT = `SELECT id, role, content, seq FROM messages
WHERE conversation_id = ? AND seq <= ? ORDER BY seq DESC LIMIT ${CONTEXT_MESSAGES}`

const COUNT_SOURCES = `SELECT count(*) AS count FROM json_each(:ids) AS named
JOIN messages ON messages.id = named.value WHERE conversation_id = :conversation`

const INSERT_LEARNING = `INSERT INTO learnings
(id, conversation_id, category, title, content, confidence, tags, dedupe_hash, source_message_ids, created_at)
VALUES (:id, :conversation, :category, :title, :content, :confidence, :tags, :hash, :sources, :now)
ON CONFLICT (dedupe_hash) DO NOTHING`

const MARK = `
UPDATE conversations SET metadata = json_set(metadata, '$.extracted_seq', :seq), updated_at = :now WHERE id = :conversation`

interface State {
  readonly isValidated: boolean
  /** The last message that learnings were extracted from. Null before the first extraction. */
  readonly extractedSeq: number | null
  readonly lastSeq: number
  readonly hasOpen: boolean
}

/**
 * Extracts learnings from the messages after the marker, in pages. Each page stores its learnings, the marker and their uploads
 * in one transaction, so a job that is killed goes on where it stopped and a second run finds nothing to do.
 */
export function extractLearning(parts: PipelineParts): Handler<ExtractPayload, ExtractionResult> {
  return async (context) => {
    const betweenPages = turnsOf(parts.clock)
    for (;;) {
      const result = await extract(parts, context, betweenPages)
      // Another job wrote a page of it first, but may have begun before the last messages came.
      if (result !== 'again') return result
    }
  }
}

async function extract(
  parts: PipelineParts,
  context: JobContext<ExtractPayload>,
  betweenPages: () => void,
): Promise<ExtractionResult | 'again'> {
  const { conversation_id: conversation } = context.payload
  const state = readState(parts.database, conversation)
  if (state === null) {
    throw new NonRetryable(
      `conversation ${conversation} does not exist; it was forgotten, or the job belongs to another database`,
    )
  }
  // Validation enqueues this job again when it is done.
  if (!state.isValidated) return { skipped: true, reason: 'not-validated' }
  if (isExtracted(state)) return { skipped: true, reason: 'already-extracted' }
  const total = { learnings: 0, duplicates: 0, dropped: 0 }
  for (let from = state.extractedSeq; ; ) {
    const page = readSources(parts.database, conversation, from, state.lastSeq)
    const { learnings, dropped } = await ask(parts, context, page)
    context.signal.throwIfAborted()
    const until = page.sources.at(-1)?.seq ?? state.lastSeq
    const written = inTransaction(parts.database, () =>
      writePage(parts, { conversation, from, until, sources: page.sources, learnings }),
    )
    if (written === 'already-extracted') return 'again'
    if (written === 'forgotten') return { skipped: true, reason: written }
    total.learnings += written.ids.length
    total.duplicates += learnings.length - written.ids.length
    total.dropped += dropped
    report(context, written, { ...total })
    if (until >= state.lastSeq) return { success: true, ...total }
    from = until
    betweenPages()
  }
}

/** Null when there is no such conversation. */
function readState(database: DatabaseSync, conversation: string): State | null {
  const row = database.prepare(READ_STATE).get(conversation)
  if (row === undefined) return null
  return {
    isValidated: row.isMarked === 1 && row.hasUnvalidated === 0,
    extractedSeq: typeof row.extractedSeq === 'number' ? row.extractedSeq : null,
    lastSeq: Number(row.lastSeq ?? 0),
    hasOpen: row.hasOpen === 1,
  }
}

function isExtracted({ extractedSeq, lastSeq }: State): boolean {
  return extractedSeq !== null && extractedSeq >= lastSeq
}

interface SourcePage {
  readonly context: readonly StoredMessage[]
  readonly sources: readonly StoredMessage[]
}

/** Messages that arrived since the job began are not validated yet, so the page ends at `lastSeq`. */
function readSources(database: DatabaseSync, conversation: string, from: number | null, lastSeq: number): SourcePage {
  const context = from === null ? [] : readPage(database, READ_CONTEXT, conversation, from).toReversed()
  return { context, sources: readPage(database, READ_PAGE, conversation, from ?? 0, lastSeq) }
}

/** What the model found in the page, filtered and sanitised. */
async function ask(
  { model, fetch, sanitize }: PipelineParts,
  { payload, signal, log }: JobContext<ExtractPayload>,
  { context, sources }: SourcePage,
): Promise<{ readonly learnings: readonly ModelLearning[]; readonly dropped: number }> {
  if (sources.length === 0) return { learnings: [], dropped: 0 }
  const messages = forModel([...context, ...sources])
  const wanted = { categories: payload.categories, minConfidence: payload.min_confidence }
  const { items, usage } = await answerOf(model.name, learningsAnswer, () =>
    model.findLearnings(messages, wanted, { signal, fetch }),
  )
  log.debug('Model asked for learnings', { model: model.name, messages: messages.length, ...usage })
  const given = new Set(messages.map(({ id }) => id))
  if (items.some(({ source_message_ids: ids }) => ids.some((id) => !given.has(id)))) {
    throw new Error(`the model '${model.name}' named a message that it was not given; it is asked again`)
  }
  const fresh = new Set(sources.map(({ id }) => id))
  const kept = items.filter(
    ({ confidence, category, source_message_ids: ids }) =>
      confidence >= wanted.minConfidence &&
      (wanted.categories.length === 0 || wanted.categories.includes(category)) &&
      // What comes only from the context was extracted with it.
      ids.some((id) => fresh.has(id)),
  )
  const clean = (text: string): string => sanitize(text).text
  const learnings = kept.map(({ category, title, content, tags, ...rest }) => ({
    ...{ ...rest, category: clean(category), title: clean(title), content: clean(content) },
    tags: [...new Set(tags.map(clean))],
  }))
  return { learnings, dropped: items.length - kept.length }
}

interface ExtractedPage {
  readonly conversation: string
  readonly from: number | null
  /** The last message of the page. */
  readonly until: number
  readonly sources: readonly StoredMessage[]
  readonly learnings: readonly ModelLearning[]
}

interface Written {
  readonly ids: readonly string[]
  readonly uploads: number
  /** Not uploaded, because a finding of the conversation is open. */
  readonly held: number
}

/** In a transaction. A reason when nothing may be written any more. */
function writePage(parts: PipelineParts, page: ExtractedPage): Written | 'forgotten' | 'already-extracted' {
  const { database, clock, upload } = parts
  const state = readState(database, page.conversation)
  if (state === null || !areKept(database, page)) return 'forgotten'
  if (state.extractedSeq !== page.from) return 'already-extracted'
  const nowMs = clock.nowMs()
  const ids = page.learnings.flatMap((learning) => insert(database, page.conversation, learning, nowMs) ?? [])
  const change = { conversation: page.conversation, seq: page.until, now: toIso(nowMs) }
  database.prepare(MARK).run(change)
  if (upload === null) return { ids, uploads: 0, held: 0 }
  // Publishing cannot be taken back, so nothing is published while personal data may still stand in a message.
  if (state.hasOpen) return { ids, uploads: 0, held: ids.length }
  for (const id of ids) {
    enqueueJob(database, { type: MINE_UPLOAD, about: id, payload: uploadOf(upload, id) }, nowMs)
  }
  return { ids, uploads: ids.length, held: 0 }
}

/** False when the conversation was forgotten meanwhile, even if another one with its id has begun. */
function areKept(database: DatabaseSync, { conversation, sources }: ExtractedPage): boolean {
  const ids = JSON.stringify(sources.map(({ id }) => id))
  return database.prepare(COUNT_SOURCES).get({ ids, conversation })?.count === sources.length
}

/** The id of the new row. Null for a duplicate. */
function insert(database: DatabaseSync, conversation: string, learning: ModelLearning, nowMs: number): string | null {
  const { category, title, content, confidence, tags, source_message_ids: sources } = learning
  const id = newJobId(nowMs)
  const { changes } = database.prepare(INSERT_LEARNING).run({
    ...{ id, conversation, category, title, content, confidence, now: toIso(nowMs) },
    ...{ tags: JSON.stringify(tags), sources: JSON.stringify(sources), hash: dedupeHash(category, content) },
  })
  return changes === 0 ? null : id
}

/** One learning is stored once, from any conversation. */
export function dedupeHash(category: string, content: string): string {
  return createHash('sha256').update(`${category}:${content}`).digest('hex')
}

function uploadOf(settings: UploadSettings, id: string): UploadPayload {
  const { ipfsEndpoint, rpcUrl, contractAddress, privateKeyRef } = settings
  return {
    learning_id: id,
    ipfs_endpoint: shownEndpoint(ipfsEndpoint),
    chain_config: { rpc_url: shownEndpoint(rpcUrl), contract_address: contractAddress, private_key_ref: privateKeyRef },
  }
}

function report({ payload, log }: JobContext<ExtractPayload>, { uploads, held }: Written, total: object): void {
  const fields = { conversation_id: payload.conversation_id, ...total, uploads, held }
  if (held > 0) log.warn('Learnings stored; an open finding stops their upload', fields)
  else log.info('Learnings stored', fields)
}
