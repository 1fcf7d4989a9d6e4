import type { ErrorRecord } from './job.ts'

/**
 * A text that every store keeps and every reader understands: no NUL, and no half of a surrogate pair, which is what is
 * left of an emoji that was cut in two. The first is left out, the second becomes U+FFFD.
 */
export function storable(text: string): string {
  return text.replaceAll('\0', '').toWellFormed()
}

/** An error record that every store keeps. The core's own are; an engine that would choke on another one calls this. */
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

/** The beginning of a text, at most `lengthMax` UTF-16 units, and never half of a character. */
export function cut(text: string, lengthMax: number): string {
  if (text.length <= lengthMax) return text
  const last = text.charCodeAt(lengthMax - 1)
  const endsInHighSurrogate = last >= 0xd800 && last <= 0xdbff
  return text.slice(0, endsInHighSurrogate ? lengthMax - 1 : lengthMax)
}

/** The same, with an ellipsis at the end where something was cut off. */
export function clip(text: string, lengthMax: number): string {
  return text.length <= lengthMax ? text : `${cut(text, lengthMax - ELLIPSIS.length)}${ELLIPSIS}`
}
