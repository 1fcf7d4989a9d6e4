import { closeSync, constants, mkdirSync, openSync, renameSync, statSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { homeFolder } from '../../../src/engines/sqlite/home-folder.ts'

/** A longer log becomes hook.log.1, and the one before it goes. */
const LOG_BYTES_MAX = 1_048_576

/** Opening a pipe in its place fails, instead of waiting for a reader. */
const APPEND = constants.O_WRONLY | constants.O_CREAT | constants.O_APPEND | constants.O_NONBLOCK

/** The sentences hold nothing of the input. None of this throws: there is nobody left to tell. */
const oneLine = (sentence: string): string => sentence.replace(/\s+/g, ' ')

/** On standard error, without process.stderr: it would load the modules of streams. */
export function mention(sentence: string): void {
  try {
    writeSync(2, `millrace-hook: ${oneLine(sentence)}\n`)
  } catch {}
}

/** In ~/.millrace/hook.log. */
export function log(sentence: string, at: string): void {
  try {
    const home = homeFolder()
    if (home === null) return
    const folder = join(home, '.millrace')
    const file = join(folder, 'hook.log')
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    const size = statSync(file, { throwIfNoEntry: false })?.size ?? 0
    if (size > LOG_BYTES_MAX) renameSync(file, `${file}.1`)
    const descriptor = openSync(file, APPEND, 0o600)
    try {
      writeSync(descriptor, `${JSON.stringify({ at, pid: process.pid, message: oneLine(sentence) })}\n`)
    } finally {
      closeSync(descriptor)
    }
  } catch {}
}
