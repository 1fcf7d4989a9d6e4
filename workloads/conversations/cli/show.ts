/** `millrace conversations list` and `show`. */
import type { DatabaseSync } from 'node:sqlite'
import { z } from 'zod'
import type { CommandCall } from '../../../src/cli/extensions.ts'
import { MillraceError } from '../../../src/errors.ts'
import { toConversationId } from '../hook/input.ts'
import { limitOf, reading } from './open.ts'

const Listed = z.object({
  id: z.string(),
  created_at: z.string(),
  updated_at: z.string(),
  messages: z.number(),
  validated: z.number(),
  findings: z.number(),
  open_findings: z.number(),
  learnings: z.number(),
  uploads: z.number(),
})

const LISTED = `SELECT c.id, c.created_at, c.updated_at,
  (SELECT count(*) FROM messages m WHERE m.conversation_id = c.id) AS messages,
  (SELECT count(*) FROM messages m WHERE m.conversation_id = c.id AND m.validated_at IS NOT NULL) AS validated,
  (SELECT count(*) FROM sanitization_log s WHERE s.conversation_id = c.id) AS findings,
  (SELECT count(*) FROM sanitization_log s WHERE s.conversation_id = c.id AND s.replacement IS NULL) AS open_findings,
  (SELECT count(*) FROM learnings l WHERE l.conversation_id = c.id) AS learnings,
  (SELECT count(*) FROM learnings l JOIN uploads u ON u.learning_id = l.id WHERE l.conversation_id = c.id) AS uploads
FROM conversations c`

const LATEST = `${LISTED} ORDER BY c.updated_at DESC, c.id DESC LIMIT ?`
const ONE = `${LISTED} WHERE c.id = ?`
const MESSAGES = `SELECT id, seq, role, validated_at, sanitization_version, created_at, content FROM messages
WHERE conversation_id = ? ORDER BY seq`
const FINDINGS = `SELECT s.category, s.detector, m.seq, s.replacement, s.confidence, s.created_at
FROM sanitization_log s JOIN messages m ON m.id = s.message_id WHERE s.conversation_id = ? ORDER BY m.seq, s.id`
const LEARNINGS = `SELECT l.id, l.category, l.confidence, l.title, u.status FROM learnings l
LEFT JOIN uploads u ON u.learning_id = l.id WHERE l.conversation_id = ? ORDER BY l.id`

export async function listConversations(call: CommandCall): Promise<void> {
  const limit = limitOf(call)
  const rows = reading(call, (database) => Listed.array().parse(database.prepare(LATEST).all(limit)))
  if (call.json) for (const row of rows) call.terminal.print(JSON.stringify(row))
  else if (rows.length === 0) call.terminal.print('No conversations.')
  else {
    const columns = [
      { title: 'ID' },
      { title: 'UPDATED' },
      { title: 'MESSAGES', align: 'right' },
      { title: 'VALIDATED', align: 'right' },
      { title: 'FINDINGS', align: 'right' },
      { title: 'LEARNINGS', align: 'right' },
      { title: 'UPLOADS', align: 'right' },
    ] as const
    call.table(
      columns,
      rows.map((row) => [
        row.id,
        row.updated_at,
        ...[row.messages, row.validated, row.findings, row.learnings, row.uploads].map(String),
      ]),
    )
  }
}

export function unknownConversation(id: string): MillraceError {
  return new MillraceError('ERR_RECORD_UNKNOWN', `no conversation has the id '${id}'; see millrace conversations list`)
}

type Row = Readonly<Record<string, unknown>>

export async function showConversation(call: CommandCall): Promise<void> {
  const [given = ''] = call.arguments
  const found = reading(call, (database) => readConversation(database, toConversationId(given)))
  if (found === null) throw unknownConversation(given)
  if (call.json) return call.terminal.print(JSON.stringify(found))
  const { messages, findings, learnings, ...facts } = found
  call.facts(Object.entries(facts).map(([name, value]) => [name.replaceAll('_', ' '), String(value)]))
  section(call, messages, ['seq', 'role', 'validated_at', 'content'])
  section(call, findings, ['seq', 'category', 'detector', 'confidence', 'replacement'])
  section(call, learnings, ['id', 'category', 'confidence', 'status', 'title'])
}

function readConversation(database: DatabaseSync, id: string) {
  const row = database.prepare(ONE).get(id)
  if (row === undefined) return null
  const { messages: _, findings: __, learnings: ___, ...facts } = Listed.parse(row)
  const all = (sql: string): readonly Row[] => database.prepare(sql).all(id)
  return { ...facts, messages: all(MESSAGES), findings: all(FINDINGS), learnings: all(LEARNINGS) }
}

function section(call: CommandCall, rows: readonly Row[], names: readonly string[]): void {
  if (rows.length === 0) return
  call.terminal.print('')
  call.table(
    names.map((name) => ({ title: name.replaceAll('_', ' ').toUpperCase() })),
    rows.map((row) => names.map((name) => String(row[name] ?? '-'))),
  )
}
