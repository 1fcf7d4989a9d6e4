import {
  type AuditEntry,
  type AuditFilter,
  auditView,
  type DeskAction,
  matchesAudit,
} from '../../engine/dead-letters.ts'
import type { RedisDatabase } from './database.ts'
import { publicId, typeOf } from './keys.ts'
import { listOf, toPlace } from './reading.ts'
import { parse, toView } from './rows.ts'

/** Entries read at once. */
const STEP = 200

/** The newest first. Entries are numbered by their place in the list, which only grows. */
export async function readAudit(database: RedisDatabase, filter: AuditFilter): Promise<readonly AuditEntry[]> {
  const entries: AuditEntry[] = []
  const count = Number(await database.call('llen', database.keys.audit))
  let to = Math.min(count, (filter.before ?? count + 1) - 1)
  while (to > 0 && entries.length < filter.limit) {
    const from = Math.max(0, to - STEP)
    const texts = listOf(await database.call('lrange', database.keys.audit, from, to - 1))
    for (const [index, text] of [...texts.entries()].reverse()) {
      const entry = readEntry(text, from + index + 1)
      if (entry !== null && matchesAudit(entry, filter) && entries.length < filter.limit) entries.push(entry)
    }
    to = from
  }
  return entries
}

const ACTIONS: readonly DeskAction[] = ['replay', 'discard', 'undo', 'purge']

/** Null for what another program has put into the list. */
function readEntry(text: unknown, seq: number): AuditEntry | null {
  const stored = parse(typeof text === 'string' ? text : undefined)
  const { at, who, reason, action: named, queue, id, before, after, withPayload } = recordOf(stored)
  const action = ACTIONS.find((known) => known === named)
  if (action === undefined || typeof queue !== 'string' || typeof id !== 'string') return null
  const type = typeOf(queue)
  const viewOf = (portrait: unknown) => readPortrait({ queue, type, bullId: id }, portrait, withPayload === true)
  return {
    seq,
    atMs: Number(at),
    who: String(who),
    reason: String(reason),
    action,
    jobId: publicId(type, id),
    type,
    before: viewOf(before) ?? {},
    after: after === undefined ? null : viewOf(after),
  }
}

/** The fields of a hash as the script noted them, without a payload unless the act changed it. */
function readPortrait(
  job: { readonly queue: string; readonly type: string; readonly bullId: string },
  portrait: unknown,
  withPayload: boolean,
): Readonly<Record<string, unknown>> | null {
  const { place, fields } = recordOf(portrait)
  const texts = Object.entries(recordOf(fields)).map(([name, value]): [string, string] => [name, String(value)])
  const row = { ...job, place: toPlace(place), fields: new Map([['data', ''], ...texts]), lockUntilMs: null }
  const view = toView(row)
  return view === null ? null : auditView(view, withPayload)
}

function recordOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? { ...value } : {}
}
