/** `millrace conversations forget`. */
import type { DatabaseSync } from 'node:sqlite'
import type { CommandCall } from '../../../src/cli/extensions.ts'
import { open } from '../../../src/client/mill.ts'
import { toEngineError } from '../../../src/engines/sqlite/faults.ts'
import { notErased } from '../../../src/engines/sqlite/vacuum.ts'
import { OptionError } from '../../../src/errors.ts'
import { errorText } from '../../../src/job/error-record.ts'
import { toConversationId } from '../hook/input.ts'
import { spooledOf } from '../hook/spool.ts'
import { openDatabase } from '../store/database.ts'
import { CONVERSATIONS_ENGINE } from '../store/engine-default.ts'
import { type Forgotten, forgetConversation, type Published, readPublished } from '../store/forget.ts'
import { conversationsFile } from '../store/location.ts'
import { reading } from './open.ts'
import { unknownConversation } from './show.ts'

export async function forget(call: CommandCall): Promise<void> {
  const [given = ''] = call.arguments
  const id = toConversationId(given)
  const found = reading(call, (database) => count(call, database, id))
  if (found === null) throw unknownConversation(given)
  if (call.options.dryRun === true) return tell(call, 'Would remove', id, found)
  if (call.options.yes !== true) {
    throw new OptionError('forgetting cannot be undone; add --yes, or --dry-run to see what would be removed')
  }
  const forgotten = await remove(call, id)
  await audit(call, id, forgotten)
  tell(call, 'Removed', id, forgotten)
  if (!forgotten.isErased) throw notErased()
}

/** What was forgotten before can be forgotten again, because the first time may not have erased it. */
const COUNT = `SELECT
  EXISTS (SELECT 1 FROM conversations WHERE id = :id)
    OR EXISTS (SELECT 1 FROM job_audit WHERE action = 'forget' AND subject = :id) AS isKnown,
  (SELECT count(*) FROM messages WHERE conversation_id = :id) AS messages,
  (SELECT count(*) FROM sanitization_log WHERE conversation_id = :id) AS findings,
  (SELECT count(*) FROM learnings WHERE conversation_id = :id) AS learnings`

type Told = Pick<Forgotten, 'messages' | 'findings' | 'learnings'> &
  Partial<Pick<Forgotten, 'jobs' | 'spooled' | 'isErased'>> & {
    readonly published: readonly Published[]
  }

/** Null for a conversation of which nothing was ever stored, and nothing waits in the spool. */
function count({ engine }: CommandCall, database: DatabaseSync, id: string): Told | null {
  const row = database.prepare(COUNT).get({ id })
  const spooled = spooledOf(conversationsFile(engine).database, id).length
  if (row === undefined || (row.isKnown === 0 && spooled === 0)) return null
  return {
    messages: Number(row.messages),
    findings: Number(row.findings),
    learnings: Number(row.learnings),
    spooled,
    published: readPublished(database, [id]),
  }
}

async function remove({ engine, clock }: CommandCall, id: string): Promise<Forgotten> {
  let database: DatabaseSync | null = null
  try {
    database = openDatabase(conversationsFile(engine).database, { nowMs: clock.nowMs() })
    return await forgetConversation({ database, clock }, id)
  } catch (error) {
    throw toEngineError(error, 'forgetting')
  } finally {
    database?.close()
  }
}

/** The audit keeps the id and the counts, nothing of the text. */
async function audit({ engine, clock, who, options, terminal }: CommandCall, id: string, done: Forgotten) {
  const { messages, findings, learnings, jobs } = done
  const mill = await open(engine ?? CONVERSATIONS_ENGINE, { clock })
  try {
    const before = { messages, findings, learnings, jobs }
    await mill.note({ who, reason: String(options.reason), action: 'forget', subject: id, before })
  } catch (error) {
    terminal.complain(`forgotten, but not recorded in the audit: ${errorText(error)}`)
  } finally {
    await mill.close()
  }
}

function tell(call: CommandCall, verb: 'Removed' | 'Would remove', id: string, told: Told): void {
  const { json, terminal, table } = call
  if (json) terminal.print(JSON.stringify({ id, dryRun: verb === 'Would remove', ...told }))
  else {
    const { published, messages, findings, learnings, jobs, spooled = 0 } = told
    const counts = { message: messages, finding: findings, learning: learnings, job: jobs, 'spooled message': spooled }
    const parts = Object.entries(counts).map(([name, of]) => (of ? `${of} ${name}${of === 1 ? '' : 's'}` : []))
    terminal.print(`${verb}: ${parts.flat().join(', ') || 'nothing was left'}.`)
    if (published.length === 0) return
    terminal.print('Published, and cannot be taken back:')
    table(
      [{ title: 'LEARNING' }, { title: 'STATUS' }, { title: 'CONTENT ID' }, { title: 'TRANSACTION' }],
      published.map((one) => [
        one.learning_id,
        one.status ?? 'perhaps',
        one.ipfs_cid ?? '-',
        // One that was signed and not mined yet may still be.
        one.chain_tx_hash ?? one.transactions.at(-1) ?? '-',
      ]),
    )
  }
}
