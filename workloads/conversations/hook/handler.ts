import type { DatabaseSync } from 'node:sqlite'
import { fileOf } from '../../../src/engines/sqlite/database.ts'
import { OptionError } from '../../../src/errors.ts'
import { type Clock, systemClock } from '../../../src/time/clock.ts'
import type { Sanitize } from '../sanitize/rule.ts'
import { inTransaction } from '../store/database.ts'
import { readSecret } from '../store/secret.ts'
import { sanitizeMessage, writeMessage } from './capture.ts'
import { type HookInput, readInput } from './input.ts'

export interface HookHandlerOptions {
  /** From `openDatabase`: it has the tables. */
  readonly database: DatabaseSync
  readonly sanitize: Sanitize
  /** Default: the secret beside the database file. */
  readonly secret?: Uint8Array
  readonly clock?: Clock
}

export type HookResult =
  | {
      readonly stored: true
      readonly conversationId: string
      readonly messageId: string
      readonly jobId: string
      /** False when a queued job of the conversation will validate this message too. */
      readonly enqueued: boolean
    }
  | { readonly stored: false; readonly reason: string }

/**
 * Records one event of a coding assistant, as `millrace-hook` does, on a database that is already open. Throws when the input
 * cannot be read or the database refuses it; the command never fails and uses the spool instead.
 */
export function hookHandler(
  input: HookInput,
  { database, sanitize, secret, clock = systemClock }: HookHandlerOptions,
): HookResult {
  const read = readInput(input)
  if (read.message === null) {
    if (read.isFault) throw new OptionError(`${read.reason}; nothing was stored`)
    return { stored: false, reason: read.reason }
  }
  const nowMs = clock.nowMs()
  const key = (): Uint8Array => secret ?? readSecret(fileOf(database))
  const message = sanitizeMessage(read.message, { sanitize, secret: key, nowMs })
  const job = inTransaction(database, () => writeMessage(database, message, nowMs))
  return { stored: true, conversationId: message.conversationId, messageId: message.id, ...job }
}
