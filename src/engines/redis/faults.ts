import { tlsAdvice, tlsText } from '../../engine/secure-url.ts'
import { EngineError, type ErrorCode, fieldOf, isError, isMillraceError, type MillraceError } from '../../errors.ts'

function codeOf(error: unknown): string {
  const code: unknown = error instanceof Error ? Reflect.get(error, 'code') : undefined
  return typeof code === 'string' ? code : ''
}

/** A refused connection to a name with two addresses is an AggregateError without a message. */
function textOf(error: unknown): string {
  if (error instanceof AggregateError && error.message === '') return error.errors.map(textOf).join('; ')
  return tlsText(codeOf(error)) ?? (error instanceof Error ? error.message : String(error))
}

/** The driver refused it before it was sent: repeating it is safe. */
export function isNotSent(error: unknown): boolean {
  return /^Stream isn't writeable/.test(textOf(error))
}

/** As the driver says it. */
export function timedOut(): Error {
  return new Error('Command timed out')
}

/** Sent, but the connection is silent: later commands on it would wait as long. */
export function isTimedOut(error: unknown): boolean {
  return textOf(error).startsWith('Command timed out')
}

/** The server does not know the script: nothing ran. */
export function isScriptMissing(error: unknown): boolean {
  return textOf(error).startsWith('NOSCRIPT')
}

/** Not the server that may write this: a replica, or a node of a cluster without the slot. Nothing was changed. */
export function isElsewhere(error: unknown): boolean {
  return /READONLY|^MOVED\b/.test(textOf(error))
}

/**
 * Refused before the command ran, and passes by itself: the server is loading, another client's script takes long, or a
 * cluster moves the slot or chooses a new primary for it.
 */
export function isNotYet(error: unknown): boolean {
  return /^(LOADING|BUSY|MASTERDOWN|TRYAGAIN|ASK|CLUSTERDOWN)\b/.test(textOf(error))
}

const UNKNOWN = 'the connection was lost; whether this call happened is unknown'
const DENIED = /\bNOPERM\b|no permissions|can't run this command/i
const GRANT = 'grant it: ACL SETUSER <user> ~<prefix>:* &<prefix>:* +@all -@admin -@dangerous +info'
const MOVING = 'the cluster is moving this slot, and nothing of this call was done; try again when the slot has moved'
const NO_NODE = 'no node of the cluster serves this slot now, and nothing was done; see CLUSTER NODES, and try again'
const FOREIGN_KEY = `a job refers to keys on another slot, as BullMQ's flows between queues do; on a cluster they are not supported`

/** By the message of the server or the driver. In scripts of Redis 6 the server's error code is inside the text. */
const ADVICE: readonly (readonly [pattern: RegExp, code: ErrorCode, advice: string])[] = [
  [
    /\bOOM\b/,
    'ERR_STORAGE_FULL',
    'Redis has reached its maxmemory; raise it or remove jobs, nothing of this call was stored',
  ],
  [
    /\bMISCONF\b/,
    'ERR_STORAGE_FULL',
    'Redis cannot write its snapshot to disk and refuses writes; free some disk space',
  ],
  [/\bREADONLY\b/, 'ERR_STORAGE_READONLY', 'this server is a replica; give the address of the primary'],
  [/\bNOREPLICAS\b/, 'ERR_STORAGE_READONLY', 'too few replicas are connected (min-replicas-to-write); bring them back'],
  [/\bNOAUTH\b/, 'ERR_STORAGE_OPEN', 'the server requires a password; give it: redis://:password@host'],
  [
    /\bWRONGPASS\b|invalid password|invalid username/i,
    'ERR_STORAGE_OPEN',
    'the user or password is wrong; in a URL, write special characters as %XX',
  ],
  [DENIED, 'ERR_STORAGE_OPEN', `this user lacks a permission; ${GRANT}`],
  [/^(ASK|TRYAGAIN)\b/, 'ERR_STORAGE_BUSY', MOVING],
  [/^(MOVED|CLUSTERDOWN)\b/, 'ERR_STORAGE_BUSY', NO_NODE],
  [/CROSSSLOT|non local key/, 'ERR_STORAGE_FAILED', FOREIGN_KEY],
  [/\b(LOADING|MASTERDOWN)\b/, 'ERR_STORAGE_BUSY', 'the server is loading its data; try again in a moment'],
  [/^BUSY\b/, 'ERR_STORAGE_BUSY', 'a script of another client runs too long on this server; find it with SLOWLOG'],
  [/\bWRONGTYPE\b/, 'ERR_STORAGE_FAILED', 'a key of this prefix belongs to something else; give another ?prefix='],
  [/DB index is out of range/, 'ERR_STORAGE_OPEN', 'the server has no database with this number; give a lower one'],
  [/max number of clients/, 'ERR_STORAGE_OPEN', 'the server takes no more connections; raise its maxclients'],
  [
    /^Command timed out|Socket timeout/,
    'ERR_STORAGE_FAILED',
    'the server did not answer in time; whether this call happened is unknown',
  ],
  [/max retries per request|Connection is closed|connection close/, 'ERR_STORAGE_FAILED', UNKNOWN],
  [/No such master/, 'ERR_STORAGE_OPEN', 'the sentinels know no primary of this name; give the right ?name='],
  [/Protocol error/, 'ERR_STORAGE_OPEN', 'the server there is not Redis; check host and port'],
]

const SOCKET_ADVICE: readonly (readonly [pattern: RegExp, code: ErrorCode, advice: string])[] = [
  [/^(ENOTFOUND|EAI_AGAIN)$/, 'ERR_STORAGE_OPEN', 'the host is unknown; check its name'],
  [
    /^(ECONNREFUSED|ENOENT|EHOSTUNREACH|ENETUNREACH|ETIMEDOUT)$/,
    'ERR_STORAGE_OPEN',
    'no server answers there; start it or check host and port',
  ],
  [/^(ECONNRESET|EPIPE)$/, 'ERR_STORAGE_FAILED', UNKNOWN],
]

function adviceFor(error: unknown): readonly [code: ErrorCode, advice: string] {
  const tls = tlsAdvice(codeOf(error))
  if (tls !== null) return ['ERR_STORAGE_OPEN', tls]
  const known =
    SOCKET_ADVICE.find(([pattern]) => pattern.test(codeOf(error))) ??
    ADVICE.find(([pattern]) => pattern.test(textOf(error)))
  return known === undefined ? ['ERR_STORAGE_FAILED', 'see the cause'] : [known[1], known[2]]
}

/** The driver keeps the arguments of the command with its error: payloads, and the password of a login. */
function withoutArguments(error: unknown): unknown {
  const command = fieldOf(error, 'command')
  if (isError(error) && command !== undefined) Reflect.set(error, 'command', { name: fieldOf(command, 'name') })
  return error
}

/** The server refused it because of an ACL. */
export function isDenied(error: unknown): boolean {
  return DENIED.test(textOf(isMillraceError(error) ? error.cause : error))
}

/** The command that this user may not run. Of a script, Redis names the line and not the command. */
function deniedCommand(error: unknown, lua: string): string | null {
  if (!isDenied(error)) return null
  const text = textOf(error)
  const line = Number(/user_script:(\d+)/.exec(text)?.[1] ?? 0)
  const found = /run the '(\S+)' command/.exec(text) ?? /call\(\s*["'](\w+)/i.exec(lua.split('\n')[line - 1] ?? '')
  return found?.[1]?.toLowerCase() ?? null
}

/** Turns any other error into a coded one. Coded errors pass through. `lua`: the script that was run. */
export function toEngineError(error: unknown, during: string, lua = ''): MillraceError {
  if (isMillraceError(error)) return error
  const denied = deniedCommand(error, lua)
  const [code, known] = adviceFor(error)
  const advice = denied === null ? known : `this user lacks the permission for '${denied}'; ${GRANT}`
  // The driver's message about its retries would send a reader looking for a setting.
  const said = advice === UNKNOWN ? '' : `${textOf(error)}; `
  return new EngineError(code, `Redis: ${during}: ${said}${advice}`, { cause: withoutArguments(error) })
}

const CHECK = 'check the server, the network, and whether it is redis: or rediss:'

/** For a call that was never sent, an unknown fault means that there is no connection. */
function adviceUnsent(reason: unknown): readonly [code: ErrorCode, advice: string] {
  const [code, advice] = adviceFor(reason)
  return code === 'ERR_STORAGE_FAILED' ? ['ERR_STORAGE_OPEN', CHECK] : [code, advice]
}

/** For errors while connecting. */
export function toOpenError(error: unknown): MillraceError {
  if (isMillraceError(error)) return error
  const [code, advice] = adviceUnsent(error)
  return new EngineError(code, `Redis: connecting: ${textOf(error)}; ${advice}`, { cause: withoutArguments(error) })
}

/** Nothing was sent. `reason`: the driver's last error of the connection. */
export function notConnected(reason: Error | null, waitedMs: number): EngineError {
  const [code, advice] = adviceUnsent(reason)
  const said = reason === null ? '' : ` (${textOf(reason)})`
  return new EngineError(code, `Redis: no connection within ${waitedMs} ms${said}, nothing was sent; ${advice}`, {
    ...(reason !== null && { cause: withoutArguments(reason) }),
  })
}
