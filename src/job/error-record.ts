import type { ErrorRecord } from './job.ts'

export const ERROR_MESSAGE_LENGTH_MAX = 2_000
export const ERROR_STACK_LENGTH_MAX = 500

/** Takes what must not be stored out of an error's text. */
export type Redactor = (text: string) => string

const EMAIL = /[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+/g
/** Credentials in a URL: scheme://user:secret@host. */
const URL_CREDENTIALS = /([a-z][a-z0-9+.-]*:\/\/)[^\s/@]+@/gi
const BEARER = /\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}/gi
/** password=…, "api_key": "…", token: … */
const ASSIGNED_SECRET =
  /\b(pass(?:word|wd)?|secret|token|api[_-]?key|authorization|private[_-]?key)(["']?\s*[:=]\s*)(["']?)[^\s"',;&]+/gi
/** Card and account numbers; shorter runs of digits are ids. */
const LONG_NUMBER = /\b\d(?:[ -]?\d){12,18}\b/g

/** The default redactor: e-mail addresses, credentials and long numbers. A user's own runs after it. */
export const redact: Redactor = (text) =>
  text
    .replace(URL_CREDENTIALS, '$1[redacted]@')
    .replace(EMAIL, '[email]')
    .replace(BEARER, '$1 [redacted]')
    .replace(ASSIGNED_SECRET, '$1$2$3[redacted]')
    .replace(LONG_NUMBER, '[number]')

/** What is kept of anything a handler threw: an Error, a string, undefined. It never throws itself. */
export function toErrorRecord(error: unknown, redactor: Redactor = redact): ErrorRecord {
  if (!(error instanceof Error)) {
    return {
      name: 'NonError',
      code: 'ERR_THROWN',
      message: clip(redactor(describe(error)), ERROR_MESSAGE_LENGTH_MAX),
      stack: null,
    }
  }
  const code = Reflect.get(error, 'code')
  return {
    name: error.name,
    code: typeof code === 'string' ? code : null,
    message: clip(redactor(error.message), ERROR_MESSAGE_LENGTH_MAX),
    stack: error.stack === undefined ? null : clip(redactor(error.stack), ERROR_STACK_LENGTH_MAX),
  }
}

function describe(thrown: unknown): string {
  try {
    return `the handler threw ${typeof thrown}: ${typeof thrown === 'object' ? JSON.stringify(thrown) : String(thrown)}`
  } catch {
    return `the handler threw ${typeof thrown}`
  }
}

function clip(text: string, lengthMax: number): string {
  return text.length <= lengthMax ? text : `${text.slice(0, lengthMax - 1)}…`
}
