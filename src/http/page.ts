/** The built dashboard: the files of one folder, and its index for every link into the page. */
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { extname, join, normalize } from 'node:path'
import { packageRoot } from '../engine/package-info.ts'

/** The folder of the built dashboard, or null. */
export function builtPage(): string | null {
  const root = packageRoot()
  const folder = root === null ? null : join(root, 'dist', 'dashboard')
  return folder !== null && existsSync(join(folder, 'index.html')) ? folder : null
}

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.ico': 'image/x-icon',
  '.woff2': 'font/woff2',
  '.json': 'application/json',
  '.webmanifest': 'application/manifest+json',
  '.map': 'application/json',
  '.txt': 'text/plain; charset=utf-8',
}

/** The build puts a hash of the content into the name, so such a file never changes. */
const HASHED = /[-.][A-Za-z0-9_-]{8,}\.[a-z0-9]+$/
const FOR_EVER = 'public, max-age=31536000, immutable'

const ENCODINGS = [
  ['br', '.br'],
  ['gzip', '.gz'],
] as const

export class Page {
  readonly #folder: string
  readonly #basePath: string

  constructor(folder: string, basePath: string) {
    this.#folder = folder
    this.#basePath = basePath
  }

  /** Null for a missing file. Other paths are links into the page; an id at the end of one may look like a file. */
  async answer(path: string, headers: Headers): Promise<Response | null> {
    const isFile = extname(path) !== ''
    const file = isFile ? await this.#file(path, headers) : null
    if (file !== null) return file
    const isLink = !isFile || (!path.startsWith('/assets/') && headers.get('accept')?.includes('text/html') === true)
    return isLink ? this.#index() : null
  }

  async #index(): Promise<Response | null> {
    const html = await read(join(this.#folder, 'index.html'))
    if (html === null) return null
    const page = html.toString('utf8').replace(/<base href="[^"]*"/, `<base href="${this.#basePath}/"`)
    return new Response(page, { headers: { 'content-type': TYPES['.html'] ?? '', 'cache-control': 'no-cache' } })
  }

  async #file(path: string, headers: Headers): Promise<Response | null> {
    // A normalized path from the root cannot leave the folder.
    const file = join(this.#folder, normalize(`/${path}`))
    const accepted = (headers.get('accept-encoding') ?? '').split(',').map((one) => one.split(';')[0]?.trim())
    const answer = {
      'content-type': TYPES[extname(file)] ?? 'application/octet-stream',
      'cache-control': HASHED.test(file) ? FOR_EVER : 'no-cache',
      vary: 'accept-encoding',
    }
    for (const [encoding, ending] of ENCODINGS) {
      const bytes = accepted.includes(encoding) ? await read(`${file}${ending}`) : null
      if (bytes !== null)
        return new Response(new Uint8Array(bytes), { headers: { ...answer, 'content-encoding': encoding } })
    }
    const bytes = await read(file)
    return bytes === null ? null : new Response(new Uint8Array(bytes), { headers: answer })
  }
}

/**
 * Such as `/.env` or `/..%2fx`, also encoded twice, behind a space, or with a wide dot, which other servers take for one. No
 * file and no link has such a segment, and scanners take a 200 for a find.
 */
export function hasDotSegment(path: string): boolean {
  const plain = decoded(path)
    ?.normalize('NFKC')
    .replaceAll(/[\s\p{Cc}]/gu, '')
  return plain === undefined || plain.split(/[\\/]/).some((segment) => segment.startsWith('.'))
}

/** Until nothing is encoded any more; undefined for what is no encoding. */
function decoded(path: string): string | undefined {
  try {
    const plain = decodeURIComponent(path)
    return plain === path ? plain : decoded(plain)
  } catch {
    return undefined
  }
}

/** Null when there is no such file. */
async function read(file: string): Promise<Buffer | null> {
  try {
    return await readFile(file)
  } catch {
    return null
  }
}

/** When the dashboard is not built. The API still works. */
export const WITHOUT_PAGE =
  'This is Millrace. The dashboard is not built here; the API is under /api/v1 and described in /openapi.json.\n'
