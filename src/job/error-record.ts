import { isError } from '../errors.ts'
import type { ErrorRecord } from './job.ts'
import { clip, cut, storable } from './storable.ts'

export const ERROR_MESSAGE_LENGTH_MAX = 2_000
export const ERROR_STACK_LENGTH_MAX = 500
const ERROR_NAME_LENGTH_MAX = 200

/** Takes what must not be stored out of an error's text. */
export type Redactor = (text: string) => string

/*
 * Each pattern is linear in the length of the text: an error may quote a megabyte, and the event loop must not stand
 * still for it. So no pattern may start anew at every letter of a long word.
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
 * What is kept of anything a handler threw: an Error, a string, undefined. It never throws itself, and every store can
 * keep what it returns: redacted, clipped between two characters, without NUL and without half a surrogate pair.
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

/** Null for what is no text, cannot be read, or makes the redactor throw: then it is safer unsaid. */
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

/** The redactor sees more than is kept, and whole words, so that no secret is cut into something it does not know. */
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
