import { EngineError } from '../../errors.ts'
import { homeFolder } from './home-folder.ts'

const FORM = `give 'sqlite:./file.db', optionally with '?synchronous=full' (the default) or '?synchronous=normal'`

export interface SqliteUrl {
  /** A path, or ':memory:'. */
  readonly database: string
  readonly synchronous: 'full' | 'normal'
}

/** `sqlite:./file.db`, `sqlite:/absolute/file.db`, `sqlite:~/file.db` in the home folder, or `sqlite::memory:`. */
export function parseUrl(url: string): SqliteUrl {
  const [path = '', query = ''] = url.slice('sqlite:'.length).split('?', 2)
  const parameters = new URLSearchParams(query)
  const unknown = [...parameters.keys()].filter((name) => name !== 'synchronous')
  const synchronous = parameters.get('synchronous') ?? 'full'
  if (path === '' || unknown.length > 0 || (synchronous !== 'full' && synchronous !== 'normal')) {
    throw new EngineError('ERR_ENGINE_URL', `'${url}' is not a database URL; ${FORM}`)
  }
  const file = decodeURI(path.replace(/^\/\/(?=\/)/, ''))
  // A shell does not expand a tilde in the middle of a word.
  return { database: file.replace(/^~(?=\/)/, () => homeOf(url)), synchronous }
}

function homeOf(url: string): string {
  const home = homeFolder()
  if (home !== null) return home
  throw new EngineError(
    'ERR_ENGINE_URL',
    `'${url}' is in the home folder, and this user has none; set HOME, or ${FORM}`,
  )
}
