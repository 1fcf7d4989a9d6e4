/**
 * The page's addresses. They are after the `#`, so that the page works under any path, and the server need not know them.
 */
export const PAGES = [
  'overview',
  'jobs',
  'dead-letters',
  'workers',
  'schedules',
  'queues',
  'topics',
  'tables',
  'webhooks',
  'alerts',
  'audit',
] as const
export type Page = (typeof PAGES)[number]

export interface Route {
  /** Null for an unknown address. */
  readonly page: Page | null
  /** The id of the item, if the address names one. */
  readonly id: string | null
  readonly query: Readonly<Record<string, string>>
}

export function parseRoute(hash: string): Route {
  const [path = '', search = ''] = splitOnce(hash.replace(/^#\/?/, ''), '?')
  const [first = '', ...rest] = path.split('/')
  const name = first === '' ? 'overview' : first
  const id = rest.length === 0 || rest[0] === '' ? null : decoded(rest.join('/'))
  const query = Object.fromEntries(new URLSearchParams(search))
  return { page: PAGES.find((page) => page === name) ?? null, id, query }
}

export function routeTo(
  page: Page,
  id: string | null = null,
  query: Readonly<Record<string, string | null | undefined>> = {},
): string {
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== null && value !== '') search.set(name, value)
  }
  const path = page === 'overview' ? '' : page
  const tail = search.size === 0 ? '' : `?${search}`
  return `#/${path}${id === null ? '' : `/${encodeURIComponent(id)}`}${tail}`
}

function splitOnce(text: string, sign: string): readonly string[] {
  const at = text.indexOf(sign)
  return at === -1 ? [text] : [text.slice(0, at), text.slice(at + 1)]
}

/** A broken escape in a typed address is taken literally. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
