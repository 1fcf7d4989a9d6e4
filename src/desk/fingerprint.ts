import { createHash } from 'node:crypto'
import type { ErrorRecord } from '../job/job.ts'

/*
 * What differs between two failures with one cause: quoted text, URLs, ids, numbers, times. The order matters: a quoted id
 * is quoted text, and a UUID is not five numbers.
 */
const VARYING: readonly (readonly [pattern: RegExp, sign: string])[] = [
  [/"[^"\n]*"|'[^'\n]*'|`[^`\n]*`|“[^”\n]*”/g, '<text>'],
  [/\b[a-z][a-z0-9+.-]*:\/\/[^\s)]+/gi, '<url>'],
  [/\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/gi, '<id>'],
  [/\b[0-9A-HJKMNP-TV-Z]{26}\b/g, '<id>'],
  [/\b(?=[0-9a-f]*\d)[0-9a-f]{12,}\b/gi, '<id>'],
  [/\d+(?:[.,:]\d+)*/g, '<n>'],
]

/** The message without what varies. */
export function normalise(message: string): string {
  const text = VARYING.reduce((left, [pattern, sign]) => left.replace(pattern, sign), message)
  return text.replace(/\s+/g, ' ').trim()
}

/**
 * Identifies all failures of one type with one cause: twelve hex digits. Stacks are left out, because every deployment moves
 * lines.
 *
 * @example
 * fingerprint('bill', { name: 'Error', code: null, message: 'no invoice 42', stack: null }) // the same as for invoice 43
 */
export function fingerprint(type: string, error: Pick<ErrorRecord, 'name' | 'code' | 'message'>): string {
  const cause = [type, error.name, error.code ?? '', normalise(error.message)].join('\n')
  return createHash('sha256').update(cause).digest('hex').slice(0, 12)
}
