/** `millrace conversations learnings` and `uploads`. */
import type { DatabaseSync } from 'node:sqlite'
import { z } from 'zod'
import type { CommandCall } from '../../../src/cli/extensions.ts'
import { toMatch } from '../store/learnings.ts'
import { limitOf, reading } from './open.ts'

const Learning = z.object({
  id: z.string(),
  conversation_id: z.string(),
  category: z.string(),
  confidence: z.number(),
  title: z.string(),
  content: z.string(),
  tags: z.string().transform((text): unknown => JSON.parse(text)),
  created_at: z.string(),
})

const COLUMNS = `l.id, l.conversation_id, l.category, l.confidence, l.title, l.content, l.tags, l.created_at`
const LATEST = `SELECT ${COLUMNS} FROM learnings l ORDER BY l.created_at DESC, l.id DESC LIMIT ?`
const FOUND = `SELECT ${COLUMNS} FROM learnings_fts f JOIN learnings l ON l.rowid = f.rowid
WHERE learnings_fts MATCH ? ORDER BY f.rank LIMIT ?`

const UPLOADS = `SELECT learning_id, status, ipfs_cid, chain_tx_hash, uploaded_at, created_at, updated_at
FROM uploads ORDER BY created_at DESC, id DESC LIMIT ?`

const Upload = z.object({
  learning_id: z.string(),
  status: z.string(),
  ipfs_cid: z.string().nullable(),
  chain_tx_hash: z.string().nullable(),
  uploaded_at: z.string().nullable(),
  created_at: z.string(),
  updated_at: z.string(),
})

function found(database: DatabaseSync, match: string, limit: number) {
  return match === '' ? [] : database.prepare(FOUND).all(match, limit)
}

export async function listLearnings(call: CommandCall): Promise<void> {
  const query = call.arguments.join(' ')
  const [isSearch, match] = [query !== '', toMatch(query)]
  const limit = limitOf(call)
  const rows = reading(call, (database) =>
    Learning.array().parse(isSearch ? found(database, match, limit) : database.prepare(LATEST).all(limit)),
  )
  if (call.json) for (const row of rows) call.terminal.print(JSON.stringify(row))
  else if (rows.length === 0) call.terminal.print(isSearch ? 'No learning has these words.' : 'No learnings.')
  else {
    call.table(
      [{ title: 'ID' }, { title: 'CATEGORY' }, { title: 'CONFIDENCE', align: 'right' }, { title: 'TITLE' }],
      rows.map(({ id, category, confidence, title }) => [id, category, confidence.toFixed(2), title]),
    )
  }
}

export async function listUploads(call: CommandCall): Promise<void> {
  const limit = limitOf(call)
  const rows = reading(call, (database) => Upload.array().parse(database.prepare(UPLOADS).all(limit)))
  if (call.json) for (const row of rows) call.terminal.print(JSON.stringify(row))
  else if (rows.length === 0) call.terminal.print('Nothing was published.')
  else {
    call.table(
      [{ title: 'LEARNING' }, { title: 'STATUS' }, { title: 'CONTENT ID' }, { title: 'TRANSACTION' }],
      rows.map((row) => [row.learning_id, row.status, row.ipfs_cid ?? '-', row.chain_tx_hash ?? '-']),
    )
  }
}
