import { statSync } from 'node:fs'
import { EngineError } from '../../errors.ts'
import { systemClock } from '../../time/clock.ts'
import { assertNotNewer } from '../sql/schema-version.ts'
import type { Connection } from './database.ts'
import { schemaVersions } from './migrate.ts'
import { SCHEMA_VERSION } from './migrations.ts'

/** How often the file and its schema are checked while they are in use. */
const LOOK_MS = 500

/**
 * Notices what other programs do to an open file. SQLite keeps using a file that was deleted or replaced, and what it
 * writes there is lost when this process ends. A newer Millrace may also migrate the file while this one runs.
 */
export class FileWatch {
  readonly #connection: Connection
  /** The inode of each file when it was opened; null while it does not exist. */
  readonly #inodes = new Map<string, string | null>()
  readonly #file: string
  #fileLookedMs = Number.NEGATIVE_INFINITY
  #schemaLookedMs = Number.NEGATIVE_INFINITY

  /** `file`: empty for a database in memory, which cannot be replaced. */
  constructor(connection: Connection, file: string) {
    this.#connection = connection
    this.#file = file
    if (file === '') return
    for (const path of [file, `${file}-wal`, `${file}-shm`]) this.#inodes.set(path, inodeOf(path))
  }

  /** Throws if the file is not the one that was opened. */
  assertSame(): void {
    const nowMs = systemClock.monotonicMs()
    if (nowMs - this.#fileLookedMs < LOOK_MS) return
    for (const [path, opened] of this.#inodes) {
      const inode = inodeOf(path)
      if (opened === null) this.#inodes.set(path, inode)
      else if (inode !== opened) throw replaced(this.#file, path, inode === null)
    }
    this.#fileLookedMs = nowMs
  }

  /** Throws if a newer Millrace migrated the file. No new work starts then; held jobs may still be settled. */
  assertKnown(): void {
    const nowMs = systemClock.monotonicMs()
    if (nowMs - this.#schemaLookedMs < LOOK_MS) return
    assertNotNewer(schemaVersions(this.#connection), SCHEMA_VERSION)
    this.#schemaLookedMs = nowMs
  }
}

function inodeOf(path: string): string | null {
  const found = statSync(path, { throwIfNoEntry: false, bigint: true })
  return found === undefined ? null : `${found.dev}:${found.ino}`
}

function replaced(file: string, path: string, isGone: boolean): EngineError {
  return new EngineError(
    'ERR_STORAGE_REPLACED',
    `SQLite: ${path} was ${isGone ? 'deleted' : 'replaced'} while it was open, so nothing can be stored safely; stop every process that uses ${file}, restore it from a backup if jobs are missing, and start again`,
  )
}
