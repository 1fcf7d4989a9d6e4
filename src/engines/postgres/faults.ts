import { tlsAdvice, tlsText } from '../../engine/secure-url.ts'
import { EngineError, type ErrorCode, isMillraceError, type MillraceError } from '../../errors.ts'

function codeOf(error: unknown): string {
  const code: unknown = error instanceof Error ? Reflect.get(error, 'code') : undefined
  return typeof code === 'string' ? code : ''
}

/** Codes of Node for a socket that cannot be opened or was closed. */
const SOCKET = ['ECONNREFUSED', 'ECONNRESET', 'ENOTFOUND', 'ETIMEDOUT', 'EPIPE', 'EHOSTUNREACH', 'EAI_AGAIN', 'ENOENT']
/** Messages of pg about its connection, which have no code. */
const BROKEN =
  /Connection terminated|timeout exceeded when trying to connect|Query read timeout|not queryable|Client was closed/
/**
 * The server crashed, stops or starts, or an administrator or a timeout ended the connection. Or the server became
 * read-only: after a failover, another connection may lead to the new primary.
 */
const SERVER_AWAY = ['57P01', '57P02', '57P03', '57P05', '25P03', '25P04', '53300', '25006']

/** The connection is unusable. What was sent over it may or may not have taken effect. */
export function isConnectionFault(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  const code = codeOf(error)
  return SOCKET.includes(code) || SERVER_AWAY.includes(code) || code.startsWith('08') || BROKEN.test(error.message)
}

/**
 * The connection is unusable, and the statement was not sent, or the server ended a transaction that was idle or took too
 * long: nothing took effect, and repeating it on another connection is safe.
 */
export function isUndone(error: unknown): boolean {
  return error instanceof Error && (['25P03', '25P04'].includes(codeOf(error)) || /not queryable/.test(error.message))
}

/** The server did not answer in time. pg has no code for it. */
export function isUnanswered(error: unknown): boolean {
  return error instanceof Error && /Query read timeout/.test(error.message)
}

/** The same of a statement whose connection was ended because the answer to an earlier one did not come in time. */
export function unanswered(cause: unknown): Error {
  return new Error('Query read timeout of an earlier statement on the connection', { cause })
}

/** The server is starting, or stopping and perhaps restarting. */
export function isStarting(error: unknown): boolean {
  return codeOf(error) === '57P03'
}

/** The server refused a value. Nothing changed, and without that value the statement would succeed. */
export function isRefusedValue(error: unknown): boolean {
  return /^(22|23)/.test(codeOf(error))
}

/** The server refused the text of a value: by encoding, by length or type of a column, or by a check of the table's owner. */
export function isRefusedText(error: unknown): boolean {
  return /^(22|23514$)/.test(codeOf(error))
}

/** Another row has the value of a unique index, such as the key of a live job. */
export function isKeyTaken(error: unknown): boolean {
  return codeOf(error) === '23505'
}

/** The role may not do this. */
export function isForbidden(error: unknown): boolean {
  return codeOf(error) === '42501'
}

/** Rolled back because of another transaction: repeating it is safe and helps. */
export function isConflict(error: unknown): boolean {
  return ['40001', '40P01'].includes(codeOf(error))
}

const ADVICE: readonly (readonly [pattern: RegExp, code: ErrorCode, advice: string])[] = [
  [/^28/, 'ERR_STORAGE_OPEN', 'the user or password is wrong, or pg_hba.conf does not let this user in'],
  [/^3D000$/, 'ERR_STORAGE_OPEN', 'the database does not exist; create it or give another name'],
  [
    /^(42P01|42703|3F000|42883)$/,
    'ERR_SCHEMA_MISSING',
    `a table, column or function is missing; run 'millrace migrate'`,
  ],
  [
    /^42501$/,
    'ERR_STORAGE_READONLY',
    `this role lacks a right; run 'millrace migrate' with '?grant=<role>' as the owner`,
  ],
  [/^(25006)$/, 'ERR_STORAGE_READONLY', 'the server is read-only, perhaps a standby; give the address of the primary'],
  [/^53100$/, 'ERR_STORAGE_FULL', `the server's disk is full; free some space, nothing of this call was stored`],
  [/^53300$/, 'ERR_STORAGE_OPEN', 'the server has no connection left; lower ?pool= or raise max_connections'],
  [/^53/, 'ERR_STORAGE_FAILED', 'the server is out of resources; try again later'],
  [/^(57014)$/, 'ERR_STORAGE_BUSY', 'the statement took too long or was cancelled; look for long transactions'],
  [/^(55P03|40)/, 'ERR_STORAGE_BUSY', 'another transaction was in the way; try again'],
  [/^57P03$/, 'ERR_STORAGE_OPEN', 'the server is starting or stopping; try again in a moment'],
  [/^(57P0|08)/, 'ERR_STORAGE_FAILED', 'the connection was lost; whether this call happened is unknown'],
  [/^23502$/, 'ERR_STORAGE_FAILED', 'a column of your own table needs a value; give it a default'],
  [/^22P05$/, 'ERR_STORAGE_FAILED', 'Postgres cannot store a NUL character; remove it from the text'],
  [/^ENOTFOUND|EAI_AGAIN$/, 'ERR_STORAGE_OPEN', 'the host is unknown; check its name'],
  [
    /^(ECONNREFUSED|ENOENT|EHOSTUNREACH)$/,
    'ERR_STORAGE_OPEN',
    'no server answers there; start it or check host and port',
  ],
]

function adviceFor(error: unknown): readonly [code: ErrorCode, advice: string] {
  const text = error instanceof Error ? error.message : ''
  if (/unsupported startup parameter|prepared statement "millrace_\w+" (?:does not exist|already exists)/.test(text)) {
    return ['ERR_STORAGE_OPEN', 'there is a pooler in between; add ?pooler=transaction to the URL']
  }
  const tls = tlsAdvice(codeOf(error))
  if (tls !== null) return ['ERR_STORAGE_OPEN', tls]
  if (/does not support SSL/.test(text))
    return ['ERR_STORAGE_OPEN', 'the server does no TLS; set ssl=on there, or leave out sslmode']
  const known = ADVICE.find(([pattern]) => pattern.test(codeOf(error)))
  if (known !== undefined) return [known[1], known[2]]
  if (/timeout exceeded when trying to connect/.test(text)) {
    return [
      'ERR_STORAGE_OPEN',
      'no server answered in time, or all connections are in use; check host, port and ?pool=',
    ]
  }
  if (isUnanswered(error)) {
    return ['ERR_STORAGE_BUSY', 'the server did not answer in time; whether this call happened is unknown']
  }
  if (isConnectionFault(error)) {
    return ['ERR_STORAGE_FAILED', 'the connection was lost; whether this call happened is unknown']
  }
  if (/password must be a string|no password/i.test(text)) return ['ERR_STORAGE_OPEN', 'give a password in the URL']
  return ['ERR_STORAGE_FAILED', 'see the cause']
}

/** A refused connection to a host with two addresses is one AggregateError with an empty message. */
function textOf(error: unknown): string {
  if (error instanceof AggregateError && error.message === '') return error.errors.map(textOf).join('; ')
  return tlsText(codeOf(error)) ?? (error instanceof Error ? error.message : String(error))
}

/** Turns errors of the driver into coded ones. Millrace's own pass through. */
export function toEngineError(error: unknown, during: string): MillraceError {
  if (isMillraceError(error)) return error
  const [code, advice] = adviceFor(error)
  return new EngineError(code, `Postgres: ${during}: ${textOf(error)}; ${advice}`, { cause: error })
}
