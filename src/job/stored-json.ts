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
  const left: (string | { readonly part: unknown })[] = [{ part: value }]
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    if (typeof next === 'string') pieces.push(next)
    else if (Array.isArray(next.part)) {
      pieces.push('[')
      left.push(']')
      for (const [index, part] of [...next.part.entries()].reverse()) left.push({ part }, index === 0 ? '' : ',')
    } else if (isRecord(next.part)) {
      pieces.push('{')
      left.push('}')
      for (const [index, name] of [...Object.keys(next.part).sort().entries()].reverse())
        left.push({ part: next.part[name] }, `${index === 0 ? '' : ','}${JSON.stringify(name)}:`)
    } else pieces.push(JSON.stringify(next.part) ?? '')
  }
  return pieces.join('')
}
