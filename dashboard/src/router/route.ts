/**
 * The page's addresses. They stand behind the `#`, so that the page works under whatever path a server mounts it and no
 * server needs to know them.
 */
export const PAGES = [
  'overview',
  'jobs',
  'dead-letters',
  'workers',
  'schedules',
  'queues',
  'topics',
  'alerts',
  'audit',
] as const
export type Page = (typeof PAGES)[number]

export interface Route {
  /** Null for an address that leads nowhere. */
  readonly page: Page | null
  /** Which one of the page's things, where the address names one. */
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

/** An address typed by hand may hold a broken escape; then it is taken as it stands. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
