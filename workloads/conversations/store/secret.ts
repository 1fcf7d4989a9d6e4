/** The local secret of `original_snippet_hash`. The hook is built from this file too. */
import { closeSync, fsyncSync, linkSync, openSync, rmSync, writeFileSync } from 'node:fs'
import { EngineError, fieldOf } from '../../../src/errors.ts'
import { readRegularFile } from './regular-file.ts'
import { hmacSha256 } from './sha256.ts'

const SECRET_BYTES = 32

/**
 * The secret beside the database file, `<file>.secret`, created on first use and readable by its owner only. All processes
 * get the same one. A database in memory gets a random one of its own.
 */
export function readSecret(databaseFile: string): Uint8Array {
  if (databaseFile === '' || databaseFile === ':memory:') return randomBytes(SECRET_BYTES)
  const file = `${databaseFile}.secret`
  const secret = read(file) ?? create(file)
  if (secret.length === SECRET_BYTES) return secret
  throw new EngineError(
    'ERR_STORAGE_FAILED',
    `${file} has ${secret.length} bytes instead of ${SECRET_BYTES}; restore it from a backup, or remove it: hashes of earlier findings then compare with no new one`,
  )
}

/** Loaded when it is needed: the hook seldom creates a secret, and node:crypto takes 5 ms to load. */
export function randomBytes(count: number): Uint8Array {
  return process.getBuiltinModule('node:crypto').randomBytes(count)
}

function read(file: string): Uint8Array | null {
  try {
    return readRegularFile(file)
  } catch (error) {
    if (fieldOf(error, 'code') === 'ENOENT') return null
    throw error
  }
}

/** Written under another name and then linked, so that no process reads a file that is still empty. The first one wins. */
function create(file: string): Uint8Array {
  const draft = `${file}.${Buffer.from(randomBytes(6)).toString('hex')}`
  try {
    const descriptor = openSync(draft, 'wx', 0o600)
    try {
      writeFileSync(descriptor, randomBytes(SECRET_BYTES))
      fsyncSync(descriptor)
    } finally {
      closeSync(descriptor)
    }
    linkSync(draft, file)
  } catch (error) {
    if (fieldOf(error, 'code') !== 'EEXIST') throw error
  } finally {
    rmSync(draft, { force: true })
  }
  return readRegularFile(file)
}

/** HMAC-SHA-256 in hex: a bare hash of a mail address or phone number can be reversed by guessing. */
export function snippetHash(secret: Uint8Array, snippet: string): string {
  return Buffer.from(hmacSha256(secret, Buffer.from(snippet))).toString('hex')
}
