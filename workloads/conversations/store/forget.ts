/** Removes everything about a conversation, on request or by age. */

import type { DatabaseSync } from 'node:sqlite'
import { setImmediate } from 'node:timers/promises'
import { z } from 'zod'
import { fileOf } from '../../../src/engines/sqlite/database.ts'
import { rewriteFile } from '../../../src/engines/sqlite/vacuum.ts'
import { OptionError } from '../../../src/errors.ts'
import type { Log } from '../../../src/job/definition.ts'
import { type Clock, systemClock } from '../../../src/time/clock.ts'
import { toIso } from '../../../src/time/iso.ts'
import { removeSpooled } from '../hook/spool.ts'
import { CONVERSATION_JOBS, ULID_PATTERN } from '../jobs/contract.ts'
import { emptyWal, inTransaction } from './database.ts'

export interface ForgetParts {
  /** From `openDatabase`, outside a transaction. */
  readonly database: DatabaseSync
  readonly clock?: Clock
  readonly log?: Log
  /** Default: the home folder of the user, where the hook keeps what it cannot put beside the database. */
  readonly home?: string
}

const publishedRow = z.object({
  learning_id: z.string(),
  /** Null: it was sent to IPFS, and nobody knows whether it arrived. */
  status: z.enum(['ipfs_uploaded', 'tx_submitted', 'confirmed']).nullable(),
  ipfs_cid: z.string().nullable(),
  chain_tx_hash: z.string().nullable(),
  /** Every transaction that was signed for it. One that was not mined yet may still be. */
  transactions: z.string().transform((text) => z.array(z.string()).parse(JSON.parse(text))),
})

/** What was published of a learning, and cannot be taken back. */
export type Published = z.infer<typeof publishedRow>

export interface Forgotten {
  readonly conversations: number
  readonly messages: number
  readonly findings: number
  readonly learnings: number
  /** In any state, with their history. */
  readonly jobs: number
  /** Entries of the hook's spool. */
  readonly spooled: number
  /** Stays on IPFS and on the chain. */
  readonly published: readonly Published[]
  /**
   * False: another process was in the way, so the file or its write-ahead log may still have the text. Forget the conversation
   * again, also if nothing of it is stored any more. After retention, true only says that the log was emptied.
   */
  readonly isErased: boolean
}

const TYPES = Object.keys(CONVERSATION_JOBS)
  .map((type) => `'${type}'`)
  .join(', ')

const OF = 'IN (SELECT value FROM json_each(:ids))'
const LEARNINGS_OF = `SELECT id FROM learnings WHERE conversation_id ${OF}`

const READ_PUBLISHED = `
SELECT learnings.id AS learning_id, status, coalesce(uploads.ipfs_cid, started.ipfs_cid) AS ipfs_cid, chain_tx_hash,
  (SELECT json_group_array(tx_hash) FROM upload_transactions WHERE learning_id = learnings.id) AS transactions
FROM learnings LEFT JOIN uploads ON uploads.learning_id = learnings.id
LEFT JOIN upload_starts AS started ON started.learning_id = learnings.id
WHERE conversation_id ${OF} AND (uploads.id IS NOT NULL OR started.ipfs_cid IS NOT NULL OR transactions <> '[]')
ORDER BY learnings.id`

/** What was published of conversations that are still there. */
export function readPublished(database: DatabaseSync, conversations: readonly string[]): readonly Published[] {
  const rows = database.prepare(READ_PUBLISHED).all({ ids: JSON.stringify(conversations) })
  return rows.map((row) => publishedRow.parse(row))
}

/** A worker that runs one of them loses its lease, so its handler is aborted and its result refused. */
const REMOVE_JOBS = `
DELETE FROM job_queue WHERE type IN (${TYPES}) AND CASE
  WHEN json_valid(payload) THEN payload ->> '$.conversation_id' ${OF} OR payload ->> '$.learning_id' IN (${LEARNINGS_OF})
  ELSE EXISTS (SELECT 1 FROM json_each(:ids) WHERE instr(payload, value) > 0) END
RETURNING id`

/** Even with 'secure-delete' the index keeps words of deleted rows that were the first of one of its pages. */
const REBUILD_INDEX = `INSERT INTO learnings_fts(learnings_fts) VALUES ('rebuild')`

const REMOVE_EVENTS = `DELETE FROM job_events WHERE job_id ${OF}`

const OLD = `SELECT id FROM conversations WHERE updated_at < ? ORDER BY updated_at LIMIT ?`
const STILL_OLD = `SELECT id FROM conversations WHERE id ${OF} AND updated_at < :before`

/** Conversations in one transaction. The thread is blocked meanwhile, and other processes cannot write. */
const BATCH = 20

/**
 * Removes a conversation: its messages, findings and learnings, the jobs that name it or its learnings in whatever state,
 * and what the hook has spooled of it. The full-text index and the file are written anew, so no byte of the text is left,
 * nor of what was replaced or removed by age before. What was published cannot be removed and is returned.
 *
 * @example
 * const { messages, published } = await forgetConversation({ database }, '01K5X0000000000000000000AA')
 */
export async function forgetConversation(parts: ForgetParts, conversationId: string): Promise<Forgotten> {
  if (!ULID_PATTERN.test(conversationId)) {
    throw new OptionError('the id of the conversation is no ULID; see millrace conversations list, nothing was removed')
  }
  const { database, home } = parts
  const file = fileOf(database)
  // Before the rows: a worker that takes the spool in meanwhile writes messages that are removed next.
  const spooled = file === '' ? 0 : removeSpooled(file, conversationId, home)
  const removed = inTransaction(database, () => {
    const counts = remove(database, [conversationId])
    database.exec(REBUILD_INDEX)
    return counts
  })
  return finished(parts, { ...removed, spooled }, await rewriteFile(file))
}

/**
 * Forgets conversations whose last change is older than this, in batches. What is in the spool is newer and stays. The text is
 * overwritten, but the file is not written anew: a few words can stay in it until a conversation is forgotten on request.
 */
export async function retainConversations(
  parts: ForgetParts,
  { olderThanDays }: { readonly olderThanDays: number },
): Promise<Forgotten> {
  if (!(olderThanDays >= 0 && olderThanDays <= 36_500)) {
    throw new OptionError(`'olderThanDays' is ${olderThanDays}; give days from 0 to 36500`)
  }
  const { database, clock = systemClock } = parts
  const before = toIso(clock.nowMs() - olderThanDays * 86_400_000)
  let sum = NOTHING
  for (;;) {
    const ids = database.prepare(OLD).all(before, BATCH)
    if (ids.length === 0) return finished(parts, sum, emptyWal(database))
    const removed = inTransaction(database, () => remove(database, stillOld(database, ids, before)))
    sum = added(sum, removed)
    await setImmediate()
  }
}

const NOTHING: Forgotten = {
  ...{ conversations: 0, messages: 0, findings: 0, learnings: 0, jobs: 0, spooled: 0 },
  ...{ published: [], isErased: true },
}

function added(one: Forgotten, other: Forgotten): Forgotten {
  return {
    conversations: one.conversations + other.conversations,
    messages: one.messages + other.messages,
    findings: one.findings + other.findings,
    learnings: one.learnings + other.learnings,
    jobs: one.jobs + other.jobs,
    spooled: one.spooled + other.spooled,
    published: [...one.published, ...other.published],
    isErased: one.isErased && other.isErased,
  }
}

/** Those that the hook has not continued since they were found. In a transaction. */
function stillOld(database: DatabaseSync, found: readonly { readonly id?: unknown }[], before: string) {
  const ids = JSON.stringify(found.map(({ id }) => id))
  return database
    .prepare(STILL_OLD)
    .all({ ids, before })
    .map(({ id }) => String(id))
}

/** In a transaction. */
function remove(database: DatabaseSync, conversations: readonly string[]): Forgotten {
  const ids = JSON.stringify(conversations)
  const published = readPublished(database, conversations)
  const jobs = database.prepare(REMOVE_JOBS).all({ ids })
  database.prepare(REMOVE_EVENTS).run({ ids: JSON.stringify(jobs.map(({ id }) => id)) })
  const from = (table: 'sanitization_log' | 'learnings' | 'messages'): number =>
    Number(database.prepare(`DELETE FROM ${table} WHERE conversation_id ${OF}`).run({ ids }).changes)
  return {
    findings: from('sanitization_log'),
    learnings: from('learnings'),
    messages: from('messages'),
    conversations: Number(database.prepare(`DELETE FROM conversations WHERE id ${OF}`).run({ ids }).changes),
    ...{ jobs: jobs.length, spooled: 0, published, isErased: true },
  }
}

function finished({ log }: ForgetParts, forgotten: Forgotten, isErased: boolean): Forgotten {
  const { published, ...counts } = forgotten
  log?.info('Conversations forgotten', { ...counts, isErased, published: published.length })
  if (!isErased)
    log?.warn('Another process uses the database; forgotten text may still be in its file or write-ahead log')
  return { ...forgotten, isErased }
}
