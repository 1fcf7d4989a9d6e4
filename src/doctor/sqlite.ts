/** What only SQLite has: the file and its file system, the WAL, the journal and how commits reach the disk. */
import type { Finding } from '../engine/engine.ts'
import { failure, formatBytes, ok, warning } from './findings.ts'

export function judgeSqliteVersion({
  version,
  hasWalFault,
}: {
  readonly version: string
  readonly hasWalFault: boolean
}): Finding {
  if (!hasWalFault) return ok('sqlite version', `SQLite ${version}, which does not have the WAL-reset fault`)
  return failure(
    'sqlite version',
    `SQLite ${version} has the WAL-reset fault: two connections can corrupt the file`,
    'Stop every process on this file, upgrade to Node 24.15 or better-sqlite3 13, then run doctor --deep.',
  )
}

export function judgeJournal(mode: string): Finding {
  if (mode === 'wal') return ok('journal mode', 'WAL: readers and the writer do not block each other')
  return failure(
    'journal mode',
    `the journal mode is '${mode}', not WAL: readers block writers, and acknowledged jobs are not synced by Millrace`,
    'Remove what sets another journal mode and close its connections; opening Millrace sets WAL again. If it does not stay, the file system has no shared memory: move the file to a local disk.',
  )
}

export interface SyncFacts {
  /** The engine's option. */
  readonly synchronous: 'full' | 'normal'
  /** Millrace syncs the WAL itself after each commit, so SQLite's own setting may stay NORMAL. */
  readonly syncsHere: boolean
  /** `PRAGMA synchronous` of this connection. */
  readonly level: number
}

const LEVELS = ['OFF', 'NORMAL', 'FULL', 'EXTRA'] as const

/** Each process decides for itself: this holds for connections opened with the same URL. */
export function judgeSynchronous({ synchronous, syncsHere, level }: SyncFacts): Finding {
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

/** `faults`: the lines of `PRAGMA quick_check`. */
export function judgeIntegrity(faults: readonly string[]): readonly Finding[] {
  if (faults.length === 0) return [ok('integrity', 'quick_check read the whole file and found no damage')]
  return faults.map((fault) =>
    failure(
      'integrity',
      `quick_check: ${fault}`,
      'Stop every process, keep a copy of the file with its -wal, and restore the last backup. Without one, use the recover command of the sqlite3 shell.',
    ),
  )
}

export interface FileSystemFacts {
  /** Null where the system does not say. */
  readonly type: string | null
  readonly kind: 'local' | 'network' | 'memory' | 'shared'
}

export function judgeFileSystem({ type, kind }: FileSystemFacts): Finding {
  if (type === null) return ok('file system', 'unknown: only Linux reports it; make sure the file is on a local disk')
  switch (kind) {
    case 'network':
      return failure(
        'file system',
        `${type} is a network file system: its locks and shared memory are unreliable, and WAL can corrupt the file`,
        'Stop the workers, copy the file with VACUUM INTO to a local disk of the one machine that uses it, and open it there.',
      )
    case 'memory':
      return warning('file system', `${type} is memory: every job ends with this machine`, 'Move the file to a disk.')
    case 'shared':
      return warning(
        'file system',
        `whether locks hold on ${type} cannot be known from here`,
        'Keep the file on a local disk, in a container on a volume and not on a shared folder.',
      )
    case 'local':
      return ok('file system', `${type}, a local one`)
    default:
      return kind satisfies never
  }
}

export function judgeInMemory(): Finding {
  return warning('file system', 'the database is in memory: every job ends with this process', 'Open a file instead.')
}

export function judgeWal(walBytes: number, walBytesMax: number): Finding {
  if (walBytes <= walBytesMax) {
    return ok('wal size', `${formatBytes(walBytes)}; up to ${formatBytes(walBytesMax)} is normal`)
  }
  return warning(
    'wal size',
    `the WAL has ${formatBytes(walBytes)}, more than ${formatBytes(walBytesMax)}: it is not folded back into the file`,
    'Find the connection that holds a read transaction open (a forgotten BEGIN, an unfinished iterator, a backup) and end it; then run PRAGMA wal_checkpoint(TRUNCATE) with the sqlite3 shell.',
  )
}

const MIB = 1024 * 1024
const DISK_BYTES_MIN = 64 * MIB
const DISK_BYTES_GOOD = 1024 * MIB

/** A full disk refuses every enqueue and settle. A backup with VACUUM INTO needs the size of the file once more. */
export function judgeDisk(freeBytes: number, databaseBytes: number): Finding {
  const detail = `${formatBytes(freeBytes)} free, the database has ${formatBytes(databaseBytes)}`
  const advice = 'Free space on this disk, move the database to a larger one, or keep fewer finished jobs.'
  if (freeBytes < DISK_BYTES_MIN)
    return failure('disk space', `${detail}: soon no job can be stored or settled`, advice)
  if (freeBytes < Math.max(DISK_BYTES_GOOD, databaseBytes)) {
    return warning('disk space', `${detail}: a backup may not fit beside it`, advice)
  }
  return ok('disk space', detail)
}

/** Less than this is used up by the next jobs anyway. */
const FREE_BYTES_MIN = 16 * MIB
const FREE_PART_MAX = 0.5

export interface PageFacts {
  readonly pages: number
  readonly free: number
  /** Of one page. */
  readonly bytes: number
  /** `PRAGMA auto_vacuum`: 2 is incremental. */
  readonly vacuum: number
}

/** Free pages inside the file, and whether they are ever given back. */
export function judgeFreeSpace({ pages, free, bytes, vacuum }: PageFacts, freeBytesMin = FREE_BYTES_MIN): Finding {
  const share = `${formatBytes(free * bytes)} of ${formatBytes(pages * bytes)} in the file are free`
  if (vacuum === 2) return ok('free space', `${share}; retention gives it back in small steps`)
  if (free * bytes < freeBytesMin || free / pages <= FREE_PART_MAX) {
    return ok('free space', `${share} for the next jobs; the file itself does not shrink`)
  }
  return warning(
    'free space',
    `${share}, and it is not given back: the file was not made by Millrace, or by a version before retention`,
    'Stop every process on the file and run PRAGMA auto_vacuum = INCREMENTAL; VACUUM; on it once. It needs as much free disk as the jobs take.',
  )
}
