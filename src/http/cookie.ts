/** The cookie of a login. No script can read it, and no browser sends it from the page of another site. */
import { hostOf } from './guards.ts'
import type { Session, Sessions } from './sessions.ts'

interface Found {
  readonly name: string
  readonly value: string
  readonly session: Session
}

export class SessionCookie {
  /** `__Host-` is only allowed at the root; both prefixes make browsers refuse such a cookie that came over plain HTTP. */
  readonly #prefix: '__Host-' | '__Secure-'
  readonly #path: string

  /** @param basePath Without a trailing slash; empty at the root. */
  constructor(basePath: string) {
    this.#prefix = basePath === '' ? '__Host-' : '__Secure-'
    this.#path = basePath === '' ? '/' : basePath
  }

  /** The first cookie that is valid: two mounts of one origin may have cookies of the same name. */
  find(request: Request, sessions: Sessions): Found | null {
    for (const { name, value } of this.#read(request)) {
      const session = sessions.find(value)
      if (session !== null) return { name, value, session }
    }
    return null
  }

  forLogin(request: Request, value: string): string {
    const [secure, plain] = this.#names(request)
    return this.#header(isHttps(request) ? secure : plain, value)
  }

  /** Under the name that it has: a request does not always say that it came over https. */
  forRenewal(request: Request, sessions: Sessions): string | null {
    const found = this.find(request, sessions)
    return found?.session.renewed == null ? null : this.#header(found.name, found.session.renewed)
  }

  /** Ends the sessions of a request, and removes their cookies. */
  end(request: Request, sessions: Sessions): readonly string[] {
    return this.#read(request).map(({ name, value }) => {
      sessions.end(value)
      return `${this.#header(name, '')}; Max-Age=0`
    })
  }

  #header(name: string, value: string): string {
    const secure = name.startsWith('__') ? '; Secure' : ''
    return `${name}=${value}; Path=${this.#path}; HttpOnly; SameSite=Strict${secure}`
  }

  /** Cookies do not know ports, so the name has it: several dashboards may run on one machine. */
  #names(request: Request): readonly [secure: string, plain: string] {
    const port = /:(\d+)$/.exec(hostOf(request))?.[1]
    const name = port === undefined ? 'millrace' : `millrace-${port}`
    return [`${this.#prefix}${name}`, name]
  }

  #read(request: Request): readonly { readonly name: string; readonly value: string }[] {
    const [secure, plain] = this.#names(request)
    const given = (request.headers.get('cookie') ?? '').split(';').flatMap((part) => {
      const [name = '', value = ''] = part.trim().split('=', 2)
      return { name, value }
    })
    const accepted = isHttps(request) ? [secure] : [secure, plain]
    return accepted.flatMap((wanted) => given.filter(({ name }) => name === wanted))
  }
}

/** Whether the browser used https, perhaps up to a proxy: then it, or its Origin, says so. */
function isHttps({ url, headers }: Request): boolean {
  const forwarded = headers.get('x-forwarded-proto')?.split(',')[0]?.trim().toLowerCase()
  return url.startsWith('https:') || forwarded === 'https' || headers.get('origin')?.startsWith('https:') === true
}
