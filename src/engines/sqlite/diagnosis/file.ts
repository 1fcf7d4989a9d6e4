/** Where the database lies: the file system, the WAL beside it and the room that is left. */
import { stat, statfs } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { Finding } from '../../../engine/diagnosis.ts'
import { failure, formatBytes, ok, warning } from '../../../engine/findings.ts'
import { fileSystemOf, isInMemory, isNetwork, isShared, readMounts } from '../file-system.ts'

/** What is asked of the machine, so that a test can answer for a machine that it does not have. */
export interface Machine {
  /** The text of /proc/mounts, or null where there is none. */
  mounts(): Promise<string | null>
  freeBytes(folder: string): Promise<number>
  /** 0 when the file is not there. */
  fileBytes(file: string): Promise<number>
}

export const thisMachine: Machine = {
  mounts: readMounts,
  async freeBytes(folder) {
    const { bavail, bsize } = await statfs(folder)
    return bavail * bsize
  },
  fileBytes: (file) =>
    stat(file).then(
      ({ size }) => size,
      (error: unknown) => {
        if (error instanceof Error && Reflect.get(error, 'code') === 'ENOENT') return 0
        throw error
      },
    ),
}

export function lookAtFileSystem(file: string, mounts: string | null): Finding {
  const type = mounts === null ? null : fileSystemOf(file, mounts)
  if (type === null)
    return ok('file system', 'unknown: only Linux tells it; make sure that the file is on a local disk')
  if (isNetwork(type)) {
    return failure(
      'file system',
      `${type} is a network file system: its locks and shared memory cannot be relied on, and WAL can corrupt the file`,
      'Stop the workers, copy the file with VACUUM INTO to a local disk of the one machine that uses it, and open it there.',
    )
  }
  if (isInMemory(type)) {
    return warning('file system', `${type} is memory: every job ends with this machine`, 'Move the file to a disk.')
  }
  if (isShared(type)) {
    return warning(
      'file system',
      `whether locks hold on ${type} cannot be known from here`,
      'Keep the file on a local disk, in a container on a volume and not on a shared folder.',
    )
  }
  return ok('file system', `${type}, a local one`)
}

const MIB = 1024 * 1024
/** Eight times the size at which a commit folds the WAL back: a little more is a burst, this much is a checkpoint held up. */
export const WAL_BYTES_MAX: number = 64 * MIB

export function lookAtWal(walBytes: number, walBytesMax: number): Finding {
  if (walBytes <= walBytesMax) {
    return ok('wal size', `${formatBytes(walBytes)}; up to ${formatBytes(walBytesMax)} is in order`)
  }
  return warning(
    'wal size',
    `the WAL has ${formatBytes(walBytes)}, more than ${formatBytes(walBytesMax)}: it is not folded back into the file`,
    'Find the connection that holds a read transaction open (a forgotten BEGIN, an unfinished iterator, a backup) and end it; then run PRAGMA wal_checkpoint(TRUNCATE) with the sqlite3 shell.',
  )
}

const FREE_BYTES_MIN = 64 * MIB
const FREE_BYTES_GOOD = 1024 * MIB

/** A full disk refuses every enqueue and settle. A backup with VACUUM INTO needs the size of the file once more. */
export function lookAtDisk(freeBytes: number, databaseBytes: number): Finding {
  const detail = `${formatBytes(freeBytes)} free, the database has ${formatBytes(databaseBytes)}`
  const advice = 'Free space on this disk or move the database to a larger one; finished jobs that nobody needs can go.'
  if (freeBytes < FREE_BYTES_MIN) {
    return failure('disk space', `${detail}: soon no job can be stored or settled`, advice)
  }
  if (freeBytes < Math.max(FREE_BYTES_GOOD, databaseBytes)) {
    return warning('disk space', `${detail}: a backup may not fit beside it`, advice)
  }
  return ok('disk space', detail)
}

export async function lookAtFile(file: string, machine: Machine, walBytesMax: number): Promise<readonly Finding[]> {
  if (file === '') {
    return [
      warning('file system', 'the database is in memory: every job ends with this process', 'Open a file instead.'),
    ]
  }
  const walBytes = await machine.fileBytes(`${file}-wal`)
  return [
    lookAtFileSystem(file, await machine.mounts()),
    lookAtWal(walBytes, walBytesMax),
    lookAtDisk(await machine.freeBytes(dirname(file)), await machine.fileBytes(file)),
  ]
}
