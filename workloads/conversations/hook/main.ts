#!/usr/bin/env node
/**
 * `millrace-hook`: records one event of a coding assistant. It ends with 0 in bounded time whatever happens, and prints nothing
 * to standard output, which some assistants read. Built into one CommonJS file of built-in modules (scripts/hook.ts).
 */
import { mkdirSync, statSync, writeSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { homeFolder } from '../../../src/engines/sqlite/home-folder.ts'
import { isMillraceError } from '../../../src/errors.ts'
import { systemClock } from '../../../src/time/clock.ts'
import { toIso } from '../../../src/time/iso.ts'
import type { Sanitize } from '../sanitize/rule.ts'
import { userRulesFile } from '../sanitize/rules-file.ts'
import { sanitizerOf } from '../sanitize/sanitizer.ts'
import { conversationsFile } from '../store/location.ts'
import { randomBytes, readSecret } from '../store/secret.ts'
import { type SanitizedMessage, sanitizeMessage } from './capture.ts'
import { type HookCode, saveHookCode } from './code-cache.ts'
import { type RawMessage, readInput } from './input.ts'
import { log, mention } from './report.ts'
import { hasSpooled, spoolFolders, writeToSpool } from './spool.ts'
import { leave, readObject } from './stdin.ts'

/** Only in the built file. */
declare const HOOK_CODE: HookCode | undefined

/** For the whole run. What takes longer than its share leaves less for the lock. */
const RUN_MS = 1_700
const STDIN_MS = 700
const STDIN_ALL_MS = 1_200
const STDIN_BYTES_MAX = 16 * 1_048_576
const LOCK_MS_MAX = 1_000
const LOCK_MS_MIN = 100

const clock = systemClock
const startedMs = clock.monotonicMs()
const say = (sentence: string): void => {
  mention(sentence)
  log(sentence, toIso(clock.nowMs()))
}

const USAGE = `Usage: millrace-hook [--engine sqlite:./file.db]

Records one event of a coding assistant. Reads one JSON object from standard input:
  { "hook_event_name": "UserPromptSubmit", "session_id": "…", "prompt": "…" }
  { "event": "UserPromptSubmit", "conversation_id": "…", "content": "…" }
Always ends with 0. What went wrong is in ~/.millrace/hook.log. See 'millrace hook install'.
`

/** Whether a thread is left that waits for standard input. */
async function main(): Promise<boolean> {
  // The database, its WAL, the secret, the log and the spool are for their owner only.
  process.umask(0o077)
  // node:sqlite and execve warn that they are experimental.
  process.emitWarning = () => {}
  if (process.argv.includes('--help')) {
    writeSync(1, USAGE)
    return false
  }
  const arrived = await readObject({ clock, waitMs: STDIN_MS, waitAllMs: STDIN_ALL_MS, bytesMax: STDIN_BYTES_MAX })
  if ('fault' in arrived) {
    say(`${arrived.fault}; nothing was stored`)
    return arrived.isBlocked
  }
  const input = readInput(arrived.value)
  if (input.message !== null) await record(input.message)
  else if (input.isFault) say(`${input.reason}; nothing was stored`)
  else mention(`${input.reason}; nothing is stored`)
  return false
}

interface Place {
  readonly file: string
  /** Why the database that was asked for cannot be used. */
  readonly fault: string | null
}

async function record(raw: RawMessage): Promise<void> {
  const place = locate(engineOf(process.argv.slice(2)))
  const message = await sanitized(raw, place)
  if (message === null) return
  if (message.cut > 0) say(`the message was too long; its last ${message.cut} characters were not stored`)
  const fault = place.fault ?? (await write(place.file, message))
  if (fault === null) return
  try {
    writeToSpool(spoolFolders(place.file), message)
    say(`${fault}; the message waits in the spool and is stored when a worker runs`)
  } catch (error) {
    say(`${fault}; the spool cannot be written either (${codeOf(error)}); the message was not stored`)
  }
}

/** `--engine X` or `--engine=X`, otherwise the environment. */
function engineOf(args: readonly string[]): string | null {
  const index = args.findIndex((arg) => arg === '--engine' || arg.startsWith('--engine='))
  const given = args[index]?.startsWith('--engine=') === true ? args[index].slice('--engine='.length) : args[index + 1]
  return (index === -1 ? undefined : given) ?? process.env.MILLRACE_ENGINE ?? null
}

/** What is meant for another engine waits in the spool of the default database. */
function locate(engine: string | null): Place {
  try {
    const { database } = conversationsFile(engine)
    if (database !== ':memory:') return { file: resolve(database), fault: null }
    return { file: conversationsFile(null).database, fault: 'a database in memory ends with the hook' }
  } catch (error) {
    return { file: conversationsFile(null).database, fault: sentenceOf(error) }
  }
}

/** Null when it could not be sanitised: then it is not stored anywhere. */
async function sanitized(raw: RawMessage, { file }: Place): Promise<SanitizedMessage | null> {
  try {
    return sanitizeMessage(raw, {
      sanitize: await sanitizer(),
      secret: () => secretOf(file),
      nowMs: clock.nowMs(),
    })
  } catch (error) {
    // Its message could quote the text.
    say(`the message could not be sanitised (${nameOf(error)}); it was not stored`)
    return null
  }
}

/** Rules of users and what reads them are loaded only where there are some. */
async function sanitizer(): Promise<Sanitize> {
  const file = userRulesFile(process.env)
  if (file === null || !mayBeThere(file)) return sanitizerOf()
  const { loadUserRules } = await import('../sanitize/user-rules.ts')
  const { createSanitizer } = await import('../sanitize/sanitize.ts')
  const { rules, error } = loadUserRules(file)
  if (error !== null) say(error.message)
  return createSanitizer({ rules })
}

function mayBeThere(file: string): boolean {
  try {
    return statSync(file, { throwIfNoEntry: false }) !== undefined
  } catch {
    return true
  }
}

/** Without the file's secret the hashes cannot be compared with others, but they are as hard to guess. */
function secretOf(file: string): Uint8Array {
  try {
    makeDefaultFolder(file)
    return readSecret(file)
  } catch {
    return randomBytes(32)
  }
}

/** Only the folder of the default database is created: another one that is missing may be on a disk that is not mounted. */
function makeDefaultFolder(file: string): void {
  const home = homeFolder()
  if (home !== null && file === conversationsFile(null).database)
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
}

/** Null when it is stored, otherwise why not. */
async function write(file: string, message: SanitizedMessage): Promise<string | null> {
  if (hasSpooled(file)) return 'earlier messages wait in the spool'
  try {
    makeDefaultFolder(file)
    const { writeToDatabase } = await import('./write.ts')
    const leftMs = RUN_MS - (clock.monotonicMs() - startedMs)
    const { isNew } = await writeToDatabase(file, message, {
      clock,
      waitMs: Math.min(LOCK_MS_MAX, Math.max(LOCK_MS_MIN, leftMs)),
    })
    // A run that makes the tables is not the usual one, and needs more code.
    if (!isNew && typeof HOOK_CODE !== 'undefined') saveHookCode(HOOK_CODE)
    return null
  } catch (error) {
    return sentenceOf(error)
  }
}

function sentenceOf(error: unknown): string {
  if (isMillraceError(error)) return error.message
  if (codeOf(error) === 'ERR_UNKNOWN_BUILTIN_MODULE')
    return `Node ${process.versions.node} has no node:sqlite; use 24.15 or newer`
  return `the database cannot be used (${codeOf(error)})`
}

const nameOf = (error: unknown): string => (error instanceof Error ? error.name : 'an unknown error')
const codeOf = (error: unknown): string => {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  return typeof code === 'string' ? code : nameOf(error)
}

const failed = (error: unknown): void =>
  say(`${isMillraceError(error) ? error.message : `it failed (${nameOf(error)})`}; nothing was stored`)

process.on('uncaughtException', (error) => {
  failed(error)
  leave(false)
})
main().then(leave, (error: unknown) => {
  failed(error)
  leave(false)
})
