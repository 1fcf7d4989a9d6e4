/** The envelope as it is written: as JSON, with the value of the record in it once. */
import type { Envelope } from './envelope.ts'

/**
 * The text of the envelope. A value that JSON written anew would change (100.50, spaces, integers beyond 2^53) stands in
 * it as its producer wrote it, so a letter is hardly larger than its record, and no reader needs to know about it.
 */
export function encodeEnvelope(envelope: Envelope): string {
  const { original_text: text, ...fields } = envelope
  // A record whose text is `null` is no tombstone, and only this field says so.
  if (text === undefined || envelope.original_value === null) return JSON.stringify(envelope)
  const bare = text.trim()
  const start = text.indexOf(bare)
  const margins = [text.slice(0, start), text.slice(start + bare.length)]
  const written = {
    ...fields,
    ...(bare !== text && { original_margins: margins }),
  }
  const entries = Object.entries(written).map(
    ([name, value]) => `${JSON.stringify(name)}:${name === VALUE ? bare : JSON.stringify(value)}`,
  )
  return `{${entries.join(',')}}`
}

const VALUE = 'original_value' satisfies keyof Envelope

/**
 * The value as it stands in the text of an envelope, if JSON written anew would differ from it; else undefined. `text` is
 * JSON, an object, and `value` is what it says.
 */
export function writtenText(text: string, value: unknown, margins: unknown): string | undefined {
  if (value === null || value === undefined) return undefined
  const [before, after] = isMargins(margins) ? margins : ['', '']
  const hasMargins = before !== '' || after !== ''
  // By far the most, and found out much sooner than by walking through the text.
  if (!hasMargins && text.includes(`"${VALUE}":${JSON.stringify(value)}`)) return undefined
  const found = fieldOf(text, VALUE)
  if (found === null || (!hasMargins && found === JSON.stringify(value))) return undefined
  return `${before}${found}${after}`
}

const SPACE = /^[ \t\r\n]*$/

function isMargins(given: unknown): given is readonly [string, string] {
  return (
    Array.isArray(given) && given.length === 2 && given.every((part) => typeof part === 'string' && SPACE.test(part))
  )
}

/** The text of a field of the object that the text is, as it stands there. Of several, the last, as `JSON.parse` has it. */
function fieldOf(text: string, name: string): string | null {
  let [depth, start, found]: [number, number, string | null] = [0, -1, null]
  let key: string | null = null
  for (let index = 0; index < text.length; index += 1) {
    const sign = text.charAt(index)
    if (sign === '"') {
      const end = endOfString(text, index)
      if (depth === 1 && start < 0) key = text.slice(index, end + 1)
      index = end
    } else if (sign === ':' && depth === 1 && start < 0) {
      start = index + 1
    } else if (depth === 1 && (sign === ',' || sign === '}')) {
      if (key !== null && JSON.parse(key) === name) found = text.slice(start, index).trim()
      start = -1
      key = null
      if (sign === '}') depth -= 1
    } else if (sign === '{' || sign === '[') depth += 1
    else if (sign === '}' || sign === ']') depth -= 1
  }
  return found
}

/** Where the string that begins here ends: at the next quote with an even number of backslashes before it. */
function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end >= 0; end = text.indexOf('"', end + 1)) {
    let slashes = 0
    while (text.charAt(end - 1 - slashes) === '\\') slashes += 1
    if (slashes % 2 === 0) return end
  }
  return text.length
}
