import { readFileSync, renameSync, rmSync, statSync } from 'node:fs'
import path from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import { setImmediate } from 'node:timers/promises'
import { fileOf } from '../../../src/engines/sqlite/database.ts'
import { fieldOf } from '../../../src/errors.ts'
import { type Clock, systemClock } from '../../../src/time/clock.ts'
import { toIso } from '../../../src/time/iso.ts'
import { inTransaction } from '../store/database.ts'
import { type SanitizedMessage, writeMessage } from './capture.ts'
import { DRAFT, ENTRY, parseEntry, type SpoolFile, spoolFiles, spoolFolders, UNREADABLE } from './spool.ts'

/** Entries in one transaction. The thread is blocked meanwhile, and other processes cannot write. */
const BATCH = 100

/** A hook lives for two seconds, so an older draft is what a killed one has left. */
const DRAFT_AGE_MS = 60_000

/** By then no file of an entry can come back from a disk that lost its last changes. */
const REMEMBERED_MS = 30 * 24 * 60 * 60 * 1_000

export interface TakeInOptions {
  /** A connection of the pipeline's own, outside a transaction. */
  readonly database: DatabaseSync
  readonly clock?: Clock
  /** Default: the home folder of the user, where the hook keeps what it cannot put beside the database. */
  readonly home?: string
}

export interface TakenIn {
  readonly takenIn: number
  /** Entries that were in the database already: an earlier run ended before it removed their files. */
  readonly known: number
  /** Files that are no entries. They are kept, with a name that ends in `.unreadable`. */
  readonly unreadable: readonly string[]
}

interface Entry {
  readonly file: string
  readonly message: SanitizedMessage
}

/**
 * Writes what the hook has spooled to the database, in order and each entry once, whenever it is interrupted: a file is removed
 * only after the commit that wrote its entry, and the database remembers which entries it has.
 */
export async function takeInSpool({ database, clock = systemClock, home }: TakeInOptions): Promise<TakenIn> {
  const file = fileOf(database)
  const sum = { takenIn: 0, known: 0, unreadable: [] as string[] }
  if (file === '') return sum
  const files = spoolFiles(spoolFolders(file, home)).filter((one) => isDue(one, clock))
  for (let from = 0; from < files.length; from += BATCH) {
    const { entries, added } = inTransaction(database, () => {
      // Not before it: `forget` removes the files of a conversation first, and what was read then would come back after it.
      const entries = files.slice(from, from + BATCH).flatMap((one) => readEntry(one, sum.unreadable))
      return { entries, added: entries.filter(({ message }) => takeIn(database, message, clock)).length }
    })
    sum.takenIn += added
    sum.known += entries.length - added
    for (const entry of entries) rmSync(entry.file, { force: true })
    await setImmediate()
  }
  if (sum.takenIn > 0) {
    const before = toIso(clock.nowMs() - REMEMBERED_MS)
    database.prepare('DELETE FROM spooled_entries WHERE taken_in_at < ?').run(before)
  }
  return sum
}

function isDue({ folder, name }: SpoolFile, clock: Clock): boolean {
  if (name.endsWith(ENTRY)) return true
  if (!name.endsWith(DRAFT)) return false
  const { mtimeMs = Number.POSITIVE_INFINITY } = statSync(path.join(folder, name), { throwIfNoEntry: false }) ?? {}
  return mtimeMs < clock.nowMs() - DRAFT_AGE_MS
}

function readEntry({ folder, name }: SpoolFile, unreadable: string[]): readonly Entry[] {
  const file = path.join(folder, name)
  try {
    const message = parseEntry(readFileSync(file, 'utf8'))
    if (message !== null) return [{ file, message }]
    renameSync(file, file + UNREADABLE)
    unreadable.push(file + UNREADABLE)
  } catch (error) {
    // Another worker was quicker.
    if (fieldOf(error, 'code') !== 'ENOENT') unreadable.push(file)
  }
  return []
}

const REMEMBER = `INSERT INTO spooled_entries (id, taken_in_at) VALUES (?, ?) ON CONFLICT DO NOTHING`
/** The hook spools a message also when its commit failed in a way that left it in the database. */
const IS_STORED = `SELECT 1 FROM messages WHERE id = ?`

/** False when it was there already. */
function takeIn(database: DatabaseSync, message: SanitizedMessage, clock: Clock): boolean {
  const nowMs = clock.nowMs()
  const { changes } = database.prepare(REMEMBER).run(message.id, toIso(nowMs))
  if (Number(changes) === 0 || database.prepare(IS_STORED).get(message.id) !== undefined) return false
  writeMessage(database, message, nowMs)
  return true
}
