/** The configuration files of presets. */
import { readFileSync } from 'node:fs'
import type { z } from 'zod'
import { fieldOf, OptionError } from '../src/errors.ts'

/**
 * The settings in a JSON file; without a file, those of an empty object. Unknown names are refused by the schema. `example` begins
 * an object, for a file that holds something else.
 */
export function readConfig<Settings>(file: string | null, schema: z.ZodType<Settings>, example: string): Settings {
  return checkSettings(file === null ? {} : jsonIn(file, example), schema, String(file))
}

/** `where` begins the message. */
export function checkSettings<Settings>(given: unknown, schema: z.ZodType<Settings>, where: string): Settings {
  const parsed = schema.safeParse(given)
  if (parsed.success) return parsed.data
  // Where and what, without the values: one of them could be a key in the wrong place.
  const problems = parsed.error.issues.map(({ path, message }) => `${path.join('.') || 'it'}: ${message}`)
  throw new OptionError(`${where} is invalid: ${problems.join('; ')}`)
}

function jsonIn(file: string, example: string): unknown {
  try {
    return JSON.parse(readFileSync(file, 'utf8'))
  } catch (error) {
    const code = fieldOf(error, 'code')
    if (typeof code !== 'string') throw new OptionError(`${file} is not JSON; give ${example}`)
    throw new OptionError(`${file} cannot be read (${code}); check its path and permissions`)
  }
}
