import { pathToFileURL } from 'node:url'

/**
 * The URL of the file that runs this code: the bundle, once a bundler has put the program into one file. A bundle in
 * CommonJS has no `import.meta.url`, and knows its file as `__filename`.
 */
export function moduleFile(): string {
  const url: unknown = import.meta.url
  return typeof url === 'string' ? url : pathToFileURL(__filename).href
}
