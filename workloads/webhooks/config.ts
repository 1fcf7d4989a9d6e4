/** The configuration file of `millrace start --preset webhooks`. */
import { readFileSync } from 'node:fs'
import { z } from 'zod'
import { fieldOf, isMillraceError, OptionError } from '../../src/errors.ts'
import { type Duration, parseDurationMs } from '../../src/time/duration.ts'
import type { WebhooksSettings } from './webhooks.ts'

const duration = z.custom<Duration>(isDuration, `is not a duration; give one such as '30d'`)

function isDuration(value: unknown): boolean {
  try {
    return typeof value === 'string' && parseDurationMs(value, 'duration') >= 0
  } catch (error) {
    if (isMillraceError(error, 'ERR_OPTION_INVALID')) return false
    throw error
  }
}

const settings = z.strictObject({
  allow: z.array(z.string()).exactOptional(),
  concurrency: z.int().positive().exactOptional(),
  limiter: z.strictObject({ max: z.int().positive(), duration: z.int().positive() }).nullable().exactOptional(),
  userAgent: z.string().exactOptional(),
  retention: duration.exactOptional(),
})

/**
 * Reads the settings from a JSON file. Without a file there are none. Unknown names are refused.
 *
 * @example
 * const webhooks = await openWebhooks({ engine, ...loadSettings('./webhooks.json') })
 */
export function loadSettings(file: string | null): WebhooksSettings {
  if (file === null) return {}
  const parsed = settings.safeParse(jsonIn(file))
  if (parsed.success) return parsed.data
  const problems = parsed.error.issues.map(({ path, message }) => `${path.join('.') || 'it'}: ${message}`)
  throw new OptionError(`${file} is invalid: ${problems.join('; ')}`)
}

function jsonIn(file: string): unknown {
  try {
    return JSON.parse(readFileSync(file, 'utf8'))
  } catch (error) {
    const code = fieldOf(error, 'code')
    if (typeof code !== 'string') throw new OptionError(`${file} is not JSON; give { "allow": [], … }`)
    throw new OptionError(`${file} cannot be read (${code}); check its path and permissions`)
  }
}
