import { statSync } from 'node:fs'
import { EngineError, type ErrorCode, isMillraceError, type MillraceError } from '../../errors.ts'

/** SQLite's primary result codes that mean something to a caller. */
const PRIMARY = { BUSY: 5, LOCKED: 6, READONLY: 8, IOERR: 10, CORRUPT: 11, FULL: 13, CANTOPEN: 14, NOTADB: 26 } as const
const NAMES: Readonly<Record<string, number>> = {
  SQLITE_BUSY: PRIMARY.BUSY,
  SQLITE_LOCKED: PRIMARY.LOCKED,
  SQLITE_READONLY: PRIMARY.READONLY,
  SQLITE_IOERR: PRIMARY.IOERR,
  SQLITE_CORRUPT: PRIMARY.CORRUPT,
  SQLITE_FULL: PRIMARY.FULL,
  SQLITE_CANTOPEN: PRIMARY.CANTOPEN,
  SQLITE_NOTADB: PRIMARY.NOTADB,
}

/** node:sqlite carries the extended code as `errcode`, better-sqlite3 its name as `code`. */
function primaryCode(error: unknown): number | null {
  if (!(error instanceof Error)) return null
  const number = Reflect.get(error, 'errcode')
  if (typeof number === 'number') return number & 0xff
  const name = String(Reflect.get(error, 'code') ?? '')
  const known = Object.keys(NAMES).find((prefix) => name.startsWith(prefix))
  return known === undefined ? null : (NAMES[known] ?? null)
}

/** Another connection holds the lock, or the user's transaction is open on this handle: waiting helps. */
export function isBusy(error: unknown): boolean {
  const code = primaryCode(error)
  if (code === PRIMARY.BUSY || code === PRIMARY.LOCKED) return true
  return error instanceof Error && error.message.includes('cannot start a transaction within a transaction')
}

const ADVICE: Readonly<Record<number, readonly [ErrorCode, string]>> = {
  [PRIMARY.BUSY]: [
    'ERR_STORAGE_BUSY',
    'another connection held the write lock too long; end its transaction and try again',
  ],
  [PRIMARY.LOCKED]: [
    'ERR_STORAGE_BUSY',
    'another connection held the write lock too long; end its transaction and try again',
  ],
  [PRIMARY.READONLY]: ['ERR_STORAGE_READONLY', 'the file or its folder is read-only; make both writable for this user'],
  [PRIMARY.FULL]: ['ERR_STORAGE_FULL', 'the disk is full; free some space, nothing of this call was stored'],
  [PRIMARY.IOERR]: ['ERR_STORAGE_FAILED', 'the disk failed or is full; check it, nothing of this call was stored'],
  [PRIMARY.CORRUPT]: ['ERR_STORAGE_NOT_A_DATABASE', 'the file is damaged; restore it from a backup'],
  [PRIMARY.NOTADB]: ['ERR_STORAGE_NOT_A_DATABASE', 'the file is not an SQLite database; give another path'],
  [PRIMARY.CANTOPEN]: [
    'ERR_STORAGE_OPEN',
    'the file cannot be opened; create its folder and make it writable for this user',
  ],
}

/** Turns errors of the driver into coded ones. Millrace's own pass through. */
export function toEngineError(error: unknown, during: string): MillraceError {
  if (isMillraceError(error)) return error
  const code = primaryCode(error)
  const [known, advice] = (code === null ? undefined : ADVICE[code]) ?? ['ERR_STORAGE_FAILED', 'see the cause']
  const text = error instanceof Error ? error.message : String(error)
  return new EngineError(known, `SQLite: ${during}: ${text}; ${advice}`, { cause: error })
}

/** SQLite says of a folder that the disk failed. */
export function toOpenError(error: unknown, verb: 'opening' | 'reading', file: string): MillraceError {
  if (statSync(file, { throwIfNoEntry: false })?.isDirectory() !== true) return toEngineError(error, `${verb} ${file}`)
  return new EngineError('ERR_STORAGE_OPEN', `'${file}' is a folder; name a file in it, such as millrace.db`, {
    cause: error,
  })
}
