/** The words of searches. The language itself is read by the server. */
const FIELDS = ['type:', 'state:', 'tag:', 'error:', 'key:', 'tenant:', 'since:', 'until:', 'id:', 'payload.']
const VALUES: Readonly<Record<string, readonly string[]>> = {
  'state:': ['queued', 'in_progress', 'completed', 'dead', 'cancelled', 'superseded', 'discarded'],
  'since:': ['15m', '1h', '24h', '7d'],
  'until:': ['15m', '1h', '24h', '7d'],
}
const SHOWN_MAX = 10

/** Whole texts that continue the last term of this one. */
export function completions(text: string, types: readonly string[]): readonly string[] {
  const [term = ''] = /\S*$/.exec(text) ?? []
  const before = text.slice(0, text.length - term.length)
  const field = term.slice(0, term.indexOf(':') + 1)
  const values = field === 'type:' ? types.toSorted() : (VALUES[field] ?? [])
  const terms = field === '' ? FIELDS : values.map((value) => field + value)
  return terms
    .filter((one) => one.startsWith(term) && one !== term)
    .slice(0, SHOWN_MAX)
    .map((one) => before + one)
}

/** A term that looks for a tag. */
export function tagTerm(tag: string): string {
  return /[\s"\\]/.test(tag) ? `tag:"${tag.replaceAll(/["\\]/g, String.raw`\$&`)}"` : `tag:${tag}`
}
