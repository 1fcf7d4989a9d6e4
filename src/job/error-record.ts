import { fieldOf, isError, messageOf } from '../errors.ts'
import type { ErrorRecord } from './job.ts'
export const ERROR_MESSAGE_LENGTH_MAX = 2_000
export const ERROR_STACK_LENGTH_MAX = 500
const ERROR_NAME_LENGTH_MAX = 200

/** Removes secrets from an error's text. */
export type Redactor = (text: string) => string

/*
 * Each pattern is linear in the length of the text: an error may quote a megabyte, and must not block the event loop. So no
 * pattern may restart at every letter of a long word.
 */
const EMAIL = /(?<![\w.%+-])[\w.%+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+/g
/** Credentials in a URL: scheme://user:secret@host. */
const URL_CREDENTIALS = /(:\/\/)[^\s/]+@/g
const BEARER = /\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}/gi
/** password=…, "api_key": "…", AWS_SECRET_ACCESS_KEY=…, accessToken: …, also inside quoted JSON. */
const ASSIGNED_SECRET =
  /(\bpass|pass(?:word|wd|phrase)|secret|token|api[_-]?key|authorization|private[_-]?key)((?:[_-]\w{1,20})?\\*["']?\s*[:=]\s*\\*)("(?:[^"\\]|\\.)*(?:"|$)|'(?:[^'\\]|\\.)*(?:'|$)|[^\s"',;&]+)/gi
/** Card and account numbers; shorter runs of digits are ids. */
const LONG_NUMBER = /\b\d(?:[ -]?\d){12,18}\b/g

/**
 * The default redactor: e-mail addresses, credentials and long numbers. A user's own runs after it.
 *
 * @example
 * redact('no mailbox for ann@example.com') // 'no mailbox for [email]'
 */
export const redact: Redactor = (text) =>
  text
    .replace(URL_CREDENTIALS, '$1[redacted]@')
    .replace(EMAIL, '[email]')
    .replace(BEARER, '$1 [redacted]')
    .replace(ASSIGNED_SECRET, (_all, name: string, sign: string, value: string) => {
      const quote = value.startsWith('"') || value.startsWith("'") ? value.charAt(0) : ''
      return `${name}${sign}${quote}[redacted]${quote}`
    })
    .replace(LONG_NUMBER, '[number]')

/**
 * The same for a URL that could not be read. Everything up to its last @ may be a login, because a password may have any
 * character that should have been written as %XX.
 */
export function redactUrl(url: string): string {
  const end = url.lastIndexOf('@')
  const [, scheme = '', login = ''] = /^([\w+.-]+:(?:\/\/)?)?(.*)$/s.exec(url.slice(0, Math.max(0, end))) ?? []
  // Without the slashes a mistyped URL may have a login, and a path may have an @.
  const isLogin = scheme.endsWith('//') || login.includes(':')
  return redact(end === -1 || !isLogin ? url : `${scheme}[redacted]${url.slice(end)}`)
}

/** The default redactor, and a user's own after it. */
export function redactorOf(own: Redactor | undefined): Redactor {
  return own === undefined ? redact : (text) => own(redact(text))
}

/**
 * The stored form of anything a handler threw: an Error, a string, undefined. Never throws. Every store can keep the
 * result: redacted, clipped between two characters, without NUL and without half a surrogate pair.
 */
export function toErrorRecord(error: unknown, redactor: Redactor = redact): ErrorRecord {
  if (!isError(error)) {
    const message = kept(() => describe(error), redactor, ERROR_MESSAGE_LENGTH_MAX)
    return { name: 'NonError', code: 'ERR_THROWN', message: message ?? WITHHELD, stack: null }
  }
  return {
    name: kept(() => onlyText(error.name), redactor, ERROR_NAME_LENGTH_MAX) ?? 'Error',
    code: kept(() => onlyText(Reflect.get(error, 'code')), redactor, ERROR_NAME_LENGTH_MAX),
    message: kept(() => asText(error.message), redactor, ERROR_MESSAGE_LENGTH_MAX) ?? WITHHELD,
    stack: kept(() => onlyText(error.stack), redactor, ERROR_STACK_LENGTH_MAX),
  }
}

const WITHHELD = 'the text of the error was withheld: it could not be read or redacted'

/** Null if the value is not text, cannot be read, or makes the redactor throw: then it is safer not to store it. */
function kept(read: () => string | null, redactor: Redactor, lengthMax: number): string | null {
  try {
    const text = read()
    return text === null ? null : storable(clip(redactor(excerpt(text, lengthMax * 4)), lengthMax))
  } catch {
    return null
  }
}

function onlyText(value: unknown): string | null {
  return typeof value === 'string' ? value : null
}

/** Some libraries put an object where the message should be. */
function asText(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? String(value))
}

/** The redactor sees more than is kept, and whole words, so that no secret is cut beyond recognition. */
function excerpt(text: string, lengthMax: number): string {
  if (text.length <= lengthMax) return text
  const start = cut(text, lengthMax)
  const lastSpace = start.lastIndexOf(' ')
  return lastSpace > lengthMax / 2 ? start.slice(0, lastSpace) : start
}

function describe(thrown: unknown): string {
  try {
    return `the handler threw ${typeof thrown}: ${typeof thrown === 'object' ? JSON.stringify(thrown) : String(thrown)}`
  } catch {
    return `the handler threw ${typeof thrown}`
  }
}

/**
 * Text that every store can keep: NUL is removed, and half a surrogate pair (an emoji cut in two) becomes U+FFFD.
 */
export function storable(text: string): string {
  return text.replaceAll('\0', '').toWellFormed()
}

/** An error record that every store can keep. The core's own are; an engine calls this for others. */
export function storableRecord({ name, code, message, stack }: ErrorRecord): ErrorRecord {
  return {
    name: storable(name),
    code: code === null ? null : storable(code),
    message: storable(message),
    stack: stack === null ? null : storable(stack),
  }
}

/** ASCII, because a database with an old encoding has no character for `…`. */
const ELLIPSIS = '...'

/** The start of a text, at most `lengthMax` UTF-16 units, never half a character. */
export function cut(text: string, lengthMax: number): string {
  if (text.length <= lengthMax) return text
  const last = text.charCodeAt(lengthMax - 1)
  const endsInHighSurrogate = last >= 0xd800 && last <= 0xdbff
  return text.slice(0, endsInHighSurrogate ? lengthMax - 1 : lengthMax)
}

/** The same, with an ellipsis if anything was cut. */
export function clip(text: string, lengthMax: number): string {
  return text.length <= lengthMax ? text : `${cut(text, lengthMax - ELLIPSIS.length)}${ELLIPSIS}`
}

/** What a person may read of anything that was thrown. It never throws. Some network errors have no text of their own, only a code. */
export function errorText(error: unknown): string {
  const text = messageOf(error)
  if (text !== '') return redact(text)
  const code = fieldOf(error, 'code')
  if (typeof code === 'string') return code
  const name = fieldOf(error, 'name')
  return typeof name === 'string' ? name : 'Error'
}
