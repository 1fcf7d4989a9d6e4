import type { By, DeadLetter, DeadLetterFilter, DeadLetters, PayloadEdit } from '../../engine/dead-letters.ts'
import { readAudit, writeNote } from './audit.ts'
import type { RedisDatabase } from './database.ts'
import type { RedisValue } from './driver.ts'
import type { Endings } from './endings.ts'
import { findRow } from './inspector.ts'
import { publicId, queueOf, typeOf } from './keys.ts'
import { discardScript, lettersScript, removeScript, requeueScript, undiscardScript } from './lua/desk.ts'
import { rowsScript } from './lua/looking.ts'
import { listOf, toRows } from './reading.ts'
import { parse, type Row, toView } from './rows.ts'
import type { Script } from './scripts.ts'

/** Letters removed by one script: Redis does nothing else meanwhile. */
const REMOVED_MAX = 100

interface Parts {
  readonly database: RedisDatabase
  readonly endings: Endings
}

export function createDeadLetters({ database, endings }: Parts): DeadLetters {
  const act = async (script: Script, ...args: readonly RedisValue[]): Promise<boolean> => {
    const isDone = (await database.run(script, args)) === 1
    if (isDone) endings.notify()
    return isDone
  }
  return {
    list: (filter) => listLetters(database, filter),
    async find(id) {
      const row = await findRow(database, id)
      const isLetter = row?.place === 'failed' || row?.fields.get('mrEnded') === 'discarded'
      return row !== null && isLetter ? toLetter(row) : null
    },
    requeue: (id, by, edit) =>
      edit === undefined ? act(requeueScript(), id, by.who, by.reason) : requeueEdited(database, id, by, edit),
    discard: (id, { who, reason }) => act(discardScript(), id, who, reason),
    undiscard: (id, { who, reason }) => act(undiscardScript(), id, who, reason),
    remove: (ids, by) => removeLetters(database, ids, by),
    note: (note) => writeNote(database, note),
    audit: (filter) => readAudit(database, filter),
  }
}

function toLetter(row: Row): DeadLetter | null {
  const job = toView(row)
  if (job === null) return null
  return { job, error: job.error ?? { name: 'Error', code: null, message: '', stack: null } }
}

interface Found {
  readonly diedAtMs: number
  readonly id: string
  readonly queue: string
  readonly bullId: string
}

async function listLetters(database: RedisDatabase, filter: DeadLetterFilter): Promise<readonly DeadLetter[]> {
  const { type, sinceMs, beforeMs, limit, after } = filter
  if (limit < 1) return []
  const queues = type === undefined ? [] : [queueOf(type)]
  const bounds = [limit, sinceMs ?? '', beforeMs ?? '', after?.completedAtMs ?? '']
  const found = toFound(await database.run(lettersScript(), [...bounds, ...queues]))
  const page = found
    .filter(({ diedAtMs, id }) => after === undefined || diedAtMs < after.completedAtMs || id < after.id)
    .sort(byDeath)
    .slice(0, limit)
  if (page.length === 0) return []
  const rows = toRows(
    await database.run(
      rowsScript(),
      page.flatMap(({ queue, bullId }) => [queue, bullId]),
    ),
  )
  return rows.flatMap((row) => (row.place === 'failed' ? (toLetter(row) ?? []) : []))
}

function toFound(answer: unknown): Found[] {
  const values = listOf(answer)
  const found: Found[] = []
  for (let at = 0; at + 2 < values.length; at += 3) {
    const [diedAt, queue, bullId] = values.slice(at, at + 3).map(String)
    if (queue === undefined || bullId === undefined) continue
    found.push({ diedAtMs: Number(diedAt), id: publicId(typeOf(queue), bullId), queue, bullId })
  }
  return found
}

function byDeath(a: Found, b: Found): number {
  if (a.diedAtMs !== b.diedAtMs) return b.diedAtMs - a.diedAtMs
  return a.id < b.id ? 1 : -1
}

/** Only another edit changes what is compared, so that a second try is rare and a third unheard of. */
const EDIT_TRIES_MAX = 10

/** The version stands in a JSON that only we can change without harm; it is compared, and read again if it was changed. */
async function requeueEdited(database: RedisDatabase, id: string, by: By, edit: PayloadEdit): Promise<boolean> {
  for (let tries = 0; tries < EDIT_TRIES_MAX; tries += 1) {
    const row = await findRow(database, id)
    if (row === null) return false
    const before = row.fields.get('mr') ?? ''
    const args = [id, by.who, by.reason, edit.payload, before, withVersion(before, edit.payloadVersion)]
    const answer = await database.run(requeueScript(), args)
    if (answer !== -1) return answer === 1
  }
  return false
}

function withVersion(text: string, version: number): string {
  const stored = parse(text === '' ? '{}' : text)
  const { v: _, ...more } = typeof stored === 'object' && stored !== null ? { v: null, ...stored } : { v: null }
  const after = version === 1 ? more : { ...more, v: version }
  return Object.keys(after).length === 0 ? '' : JSON.stringify(after)
}

export async function removeLetters(database: RedisDatabase, ids: readonly string[], by: By): Promise<number> {
  let removed = 0
  for (let from = 0; from < ids.length; from += REMOVED_MAX) {
    const args = [by.who, by.reason, ...ids.slice(from, from + REMOVED_MAX)]
    removed += Number(await database.run(removeScript(), args))
  }
  return removed
}
