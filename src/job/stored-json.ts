/** JSON as a store returns it. Another program may have written it, with any nesting, or no JSON at all. */

export type JsonRecord = Readonly<Record<string, unknown>>

export function isRecord(value: unknown): value is JsonRecord {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The text itself where it is not JSON. */
export function parseOrText(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

/**
 * The same text for equal values: properties are in the order of their names, because Postgres may store a payload in another
 * order than it was written in. Empty for undefined. It does not recurse: `JSON.stringify` fails on some thousand levels,
 * which `JSON.parse` takes.
 */
export function canonicalJson(value: unknown): string {
  const pieces: string[] = []
  const left: (() => void)[] = []
  const write = (part: unknown): void => {
    if (Array.isArray(part))
      writeAll(
        '[',
        part.map((item: unknown) => ['', item] as const),
        ']',
      )
    else if (isRecord(part)) {
      const names = Object.keys(part).sort()
      writeAll(
        '{',
        names.map((name) => [`${JSON.stringify(name)}:`, part[name]] as const),
        '}',
      )
    } else pieces.push(JSON.stringify(part) ?? '')
  }
  const writeAll = (
    open: string,
    parts: readonly (readonly [prefix: string, part: unknown])[],
    close: string,
  ): void => {
    pieces.push(open)
    left.push(() => pieces.push(close))
    for (const [index, [prefix, part]] of [...parts.entries()].reverse()) {
      left.push(() => {
        pieces.push(index === 0 ? prefix : `,${prefix}`)
        write(part)
      })
    }
  }
  write(value)
  for (let next = left.pop(); next !== undefined; next = left.pop()) next()
  return pieces.join('')
}
