/**
 * Where sanitised messages wait that the hook could not write to the database. Every message is a file of its own: written
 * under another name, synced and renamed, so it is there as a whole or not at all, and no lock is needed between hooks and
 * workers. Names are ULIDs, so their order is that of time; after the clock was set back, a name follows those that are there.
 */
import {
  closeSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { homeFolder } from '../../../src/engines/sqlite/home-folder.ts'
import { fieldOf } from '../../../src/errors.ts'
import { ULID_PATTERN } from '../jobs/contract.ts'
import { sha256 } from '../store/sha256.ts'
import type { SanitizedMessage } from './capture.ts'

export const ENTRY = '.json'
/** What is still being written, or was when its process was killed. */
export const DRAFT = '.draft'
/** What cannot be read. It is kept for a person to look at. */
export const UNREADABLE = '.unreadable'

/**
 * Beside the database; and in the home folder, for a database whose folder is missing, read-only or full. The worker of that
 * database looks into both.
 */
export function spoolFolders(databaseFile: string, home: string | null = homeFolder()): readonly string[] {
  const file = realPath(resolve(databaseFile))
  const beside = `${file}.spool`
  if (home === null) return [beside]
  const name = Buffer.from(sha256(Buffer.from(file))).toString('hex', 0, 8)
  return [beside, join(homeSpool(home), name)]
}

const homeSpool = (home: string): string => join(home, '.millrace', 'spool')

/** SQLite resolves symbolic links, so the worker knows the file by this name. */
function realPath(file: string): string {
  for (const resolve of [
    () => realpathSync.native(file),
    () => join(realpathSync.native(dirname(file)), basename(file)),
  ]) {
    try {
      return resolve()
    } catch {}
  }
  return file
}

/** A message that follows a spooled one is spooled too, to keep their order. */
export function hasSpooled(databaseFile: string, home: string | null = homeFolder()): boolean {
  // Usually there is neither, and then this is the quickest way to know.
  const isInHome = home !== null && isThere(homeSpool(home))
  if (!isThere(`${realPath(resolve(databaseFile))}.spool`) && !isInHome) return false
  return spoolFolders(databaseFile, home).some((folder) => {
    try {
      return isThere(folder) && readdirSync(folder).some((name) => name.endsWith(ENTRY))
    } catch {
      return true
    }
  })
}

/** Where this user may not even look, this user has spooled nothing. */
function isThere(folder: string): boolean {
  try {
    return statSync(folder, { throwIfNoEntry: false }) !== undefined
  } catch {
    return false
  }
}

/** Writes it to the first folder that takes it. Throws the error of the last one if none does. */
export function writeToSpool(folders: readonly string[], message: SanitizedMessage): string {
  let last: unknown
  const name = nameBehind(lastEntry(folders), message.id)
  for (const folder of folders) {
    try {
      writeEntry(folder, name, message)
      return folder
    } catch (error) {
      last = error
    }
  }
  throw last
}

function lastEntry(folders: readonly string[]): string {
  const names = folders.flatMap((folder) => {
    try {
      return readdirSync(folder).filter((name) => name.endsWith(ENTRY))
    } catch {
      return []
    }
  })
  return names.reduce((last, name) => (name > last ? name : last), '').slice(0, -ENTRY.length)
}

/** The id if it sorts behind `last`, otherwise `last` up to some `~`, and the id. */
function nameBehind(last: string, id: string): string {
  const parts = last.split('~')
  const names = [id, ...parts.map((_, index) => `${parts.slice(0, index + 1).join('~')}~${id}`)]
  return names.find((name) => name > last) ?? id
}

function writeEntry(folder: string, name: string, message: SanitizedMessage): void {
  makeFolder(folder)
  const draft = join(folder, name + DRAFT)
  try {
    const descriptor = openSync(draft, 'wx', 0o600)
    try {
      // Not writeSync, which on a full disk writes a part and returns.
      writeFileSync(descriptor, JSON.stringify(message))
      fsyncSync(descriptor)
    } finally {
      closeSync(descriptor)
    }
    renameSync(draft, join(folder, name + ENTRY))
  } catch (error) {
    rmSync(draft, { force: true })
    throw error
  }
  syncFolder(folder)
}

/** The folder of a database is not created: it may be on a disk that is not mounted. */
function makeFolder(folder: string): void {
  const isBesideDatabase = folder.endsWith('.spool')
  try {
    mkdirSync(folder, { recursive: !isBesideDatabase, mode: 0o700 })
  } catch (error) {
    if (fieldOf(error, 'code') !== 'EEXIST') throw error
  }
}

/** After a power cut, a new name is certain to be there only if its folder was synced. Windows cannot and need not. */
function syncFolder(folder: string): void {
  if (process.platform === 'win32') return
  const descriptor = openSync(folder, 'r')
  try {
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}

export interface SpoolFile {
  readonly folder: string
  readonly name: string
}

/** Everything in the folders, in the order of their names. */
export function spoolFiles(folders: readonly string[]): readonly SpoolFile[] {
  const files = folders.flatMap((folder) => namesIn(folder).map((name) => ({ folder, name })))
  return files.sort((a, b) => (a.name < b.name ? -1 : 1))
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder)
  } catch (error) {
    if (fieldOf(error, 'code') === 'ENOENT') return []
    throw error
  }
}

/** Removes what waits of a conversation, so that it does not come back after it was forgotten. Returns how many. */
export function removeSpooled(databaseFile: string, conversationId: string, home?: string): number {
  const files = spooledOf(databaseFile, conversationId, home)
  for (const file of files) rmSync(file, { force: true })
  return files.length
}

/** The files that name a conversation. Drafts and unreadable files can hold a message of it too. */
export function spooledOf(databaseFile: string, conversationId: string, home?: string): readonly string[] {
  // Other text can stand in the message of any conversation.
  if (!ULID_PATTERN.test(conversationId)) return []
  return spoolFiles(spoolFolders(databaseFile, home))
    .map(({ folder, name }) => join(folder, name))
    .filter((file) => textOf(file).includes(conversationId))
}

/** Empty for a file that a worker has taken in meanwhile. */
function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    if (fieldOf(error, 'code') === 'ENOENT') return ''
    throw error
  }
}

const isText = (value: unknown): value is string => typeof value === 'string'
const isUlid = (value: unknown): value is string => isText(value) && ULID_PATTERN.test(value)
const isTime = (value: unknown): value is string =>
  isText(value) && /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(value)

/** Null when it is not a whole entry. */
export function parseEntry(text: string): SanitizedMessage | null {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return null
  }
  return isMessage(value) ? value : null
}

function isMessage(value: unknown): value is SanitizedMessage {
  const field = (name: string): unknown => fieldOf(value, name)
  const [role, findings, cut] = [field('role'), field('findings'), field('cut')]
  return (
    isUlid(field('id')) &&
    isUlid(field('conversationId')) &&
    (role === 'user' || role === 'assistant') &&
    isText(field('content')) &&
    isText(field('version')) &&
    Array.isArray(findings) &&
    findings.every((one) => ['category', 'hash', 'replacement'].every((name) => isText(fieldOf(one, name)))) &&
    Number.isSafeInteger(cut) &&
    isTime(field('at'))
  )
}
