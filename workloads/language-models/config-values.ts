/** What the adapters read from their configuration. */
import { OptionError } from '../../src/errors.ts'

export type Environment = Readonly<Record<string, string | undefined>>

const KEY_REFERENCE = /^env:([A-Za-z_][A-Za-z0-9_]*)$/

/** The key that a reference names. Read at start, so that a missing key stops the start and no job. */
export function keyOf(reference: string, env: Environment): string {
  const name = KEY_REFERENCE.exec(reference)?.[1]
  // It could be the key itself, so it is not repeated.
  if (name === undefined) {
    throw new OptionError("'keyRef' is not a reference; put the key into an environment variable and give env:NAME")
  }
  const key = env[name]?.trim() ?? ''
  if (key === '') throw new OptionError(`the environment variable ${name} is not set; put the key of the model into it`)
  // Otherwise fetch refuses the header with a message that quotes it.
  if (!/^[\x21-\x7e]+$/.test(key)) {
    throw new OptionError(`the environment variable ${name} holds characters that a key cannot have; set it again`)
  }
  return key
}

export function modelName(name: unknown, kind: string): string {
  if (typeof name === 'string' && name.trim() !== '') return name
  throw new OptionError(`the ${kind} model has no name; give 'model', as the provider or server calls it`)
}

/** The address of an API below the configured URL. */
export function urlBelow(base: string, path: string): string {
  const url = URL.parse(base)
  if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:')) {
    throw new OptionError("the model's 'url' is not an http or https URL; give one such as http://127.0.0.1:11434/v1")
  }
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '') {
    throw new OptionError("the model's 'url' has credentials, a query or a fragment; give it without, and 'keyRef'")
  }
  return `${url.origin}${url.pathname.replace(/\/+$/, '')}/${path}`
}
