/** Where the pipeline's file is. The hook is built from this file too. */
import { parseUrl, type SqliteUrl } from '../../../src/engines/sqlite/url.ts'
import { OptionError } from '../../../src/errors.ts'
import { CONVERSATIONS_ENGINE } from './engine-default.ts'

/** Throws an OptionError for another engine than SQLite: messages and jobs are written in one transaction of one file. */
export function conversationsFile(engine: string | null): SqliteUrl {
  const url = engine === null || engine === '' ? CONVERSATIONS_ENGINE : engine
  if (url.startsWith('sqlite:')) return parseUrl(url)
  const [scheme = ''] = url.split(':')
  throw new OptionError(
    `conversations are kept in SQLite, not in ${scheme}; give --engine sqlite:./file.db, or leave it out for ${CONVERSATIONS_ENGINE}`,
  )
}
