/** URLs that name several servers, which `URL` does not take: `redis+cluster://a:7000,b:7000/?prefix=bull`. */

export interface HostPort {
  readonly host: string
  readonly port: number
}

/** What the servers of a URL are together. */
export type Together = 'single' | 'cluster' | 'sentinel'

export interface Hosts {
  readonly together: Together
  /** The URL of the first server, with everything else that the URL says. */
  readonly first: string
  readonly others: readonly string[]
}

const SEVERAL = /^(rediss?)\+(cluster|sentinel):\/\/([^/?#]*@)?([^/?#@]*)(.*)$/

export function splitHosts(text: string): Hosts {
  const found = SEVERAL.exec(text)
  if (found === null) return { together: 'single', first: text, others: [] }
  const [, scheme, together, login = '', hosts = '', rest] = found
  const [first, ...others] = hosts.split(',')
  return {
    together: together === 'cluster' ? 'cluster' : 'sentinel',
    first: `${scheme}://${login}${first}${rest}`,
    others,
  }
}

/** The other way round, for a URL of the first server that was changed since. */
export function joinHosts({ together, others }: Hosts, first: URL): string {
  if (together === 'single') return first.href
  const text = first.href.replace(':', `+${together}:`)
  const login = first.username === '' && first.password === '' ? 0 : text.indexOf('@')
  const end = text.indexOf(first.host, login) + first.host.length
  return text.slice(0, end) + others.map((host) => `,${host}`).join('') + text.slice(end)
}
