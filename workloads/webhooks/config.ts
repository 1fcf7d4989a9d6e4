/** The configuration file of `millrace start --preset webhooks`. */
import { z } from 'zod'
import { isMillraceError } from '../../src/errors.ts'
import { type Duration, parseDurationMs } from '../../src/time/duration.ts'
import { readConfig } from '../config-file.ts'
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

export const webhookSettings = z.strictObject({
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
  return readConfig(file, webhookSettings, '{ "allow": [], … }')
}
