/** What the connection was told: the version, the journal, how commits reach the disk. */
import type { Finding } from '../../../engine/diagnosis.ts'
import { failure, ok, warning } from '../../../engine/findings.ts'
import { isMillraceError } from '../../../errors.ts'
import { assertVersionText, type Connection, type Synchronous } from '../database.ts'

export function lookAtVersion(version: string): Finding {
  try {
    assertVersionText(version)
    return ok('sqlite version', `SQLite ${version}, which does not have the WAL-reset fault`)
  } catch (error) {
    if (!isMillraceError(error)) throw error
    return failure(
      'sqlite version',
      `SQLite ${version} has the WAL-reset fault: two connections can corrupt the file`,
      'Stop every process on this file, upgrade to Node 24.15 or better-sqlite3 13, then run doctor --deep.',
    )
  }
}

export function versionOf(connection: Connection): string {
  return (connection.handle.prepare('SELECT sqlite_version() AS version').get() as { version: string }).version
}

export function lookAtJournal(connection: Connection): Finding {
  const { journal_mode: mode } = connection.handle.prepare('PRAGMA journal_mode').get() as { journal_mode: string }
  if (mode === 'wal') return ok('journal mode', 'WAL: readers and the writer do not block each other')
  return failure(
    'journal mode',
    `the journal mode is '${mode}', not WAL: readers block writers, and acknowledged jobs are not synced by Millrace`,
    'Remove what sets another journal mode and close its connections; opening Millrace sets WAL again. If it does not stay, the file system has no shared memory: move the file to a local disk.',
  )
}

export interface Durability {
  readonly synchronous: Synchronous
  /** Millrace syncs the WAL itself after each commit, so that SQLite's own setting may stay NORMAL. */
  readonly syncsHere: boolean
}

const LEVELS = ['OFF', 'NORMAL', 'FULL', 'EXTRA'] as const

/** Each process decides for itself: what is found here is true of connections opened with the same URL. */
export function lookAtSynchronous(connection: Connection, { synchronous, syncsHere }: Durability): Finding {
  const { synchronous: level } = connection.handle.prepare('PRAGMA synchronous').get() as { synchronous: number }
  const name = LEVELS[level] ?? String(level)
  if (level === 0) {
    return failure(
      'synchronous',
      'the connection runs with synchronous=OFF: a power cut can corrupt the file',
      'Remove the PRAGMA synchronous = OFF from the program that owns the handle.',
    )
  }
  if (synchronous === 'full' && (syncsHere || level >= 2)) {
    const how = syncsHere ? 'Millrace syncs the WAL before it acknowledges' : `SQLite syncs every commit (${name})`
    return ok('synchronous', `full: ${how}`)
  }
  return warning(
    'synchronous',
    `${name}: acknowledged jobs survive a crash of the process, but a power cut may undo the last of them`,
    'Open with ?synchronous=full (the default) in every process, unless losing the last commits is acceptable.',
  )
}

/** Reads every page, so it is asked for: SQLite's own check for damage. */
export function lookAtIntegrity(connection: Connection): readonly Finding[] {
  const rows = connection.handle.prepare('PRAGMA quick_check(10)').all() as { quick_check: string }[]
  const faults = rows.map((row) => row.quick_check).filter((text) => text !== 'ok')
  if (faults.length === 0) return [ok('integrity', 'quick_check read the whole file and found no damage')]
  return faults.map((fault) =>
    failure(
      'integrity',
      `quick_check: ${fault}`,
      'Stop every process, keep a copy of the file with its -wal, and restore the last backup; without one, use the recover command of the sqlite3 shell.',
    ),
  )
}
