import { pathToFileURL } from 'node:url'

/**
 * The URL of the caller's file, from its `import.meta.url`. A bundle in CommonJS has none; its file is `__filename`, here
 * as in every other module of the bundle.
 */
export function moduleFile(metaUrl: unknown): string {
  return typeof metaUrl === 'string' ? metaUrl : pathToFileURL(__filename).href
}
