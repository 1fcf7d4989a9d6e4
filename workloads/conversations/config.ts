/** The configuration of the pipeline, as a program gives it or as a JSON file. */
import { readFileSync } from 'node:fs'
import { z } from 'zod'
import { fieldOf, isMillraceError, OptionError } from '../../src/errors.ts'
import { type Duration, parseDurationMs } from '../../src/time/duration.ts'
import { checkSettings } from '../config-file.ts'
import { KEY_REFERENCE } from './jobs/payloads.ts'
import { type ModelConfig, modelConfigSchema } from './models/config.ts'
import type { ExtractSettings, UploadSettings } from './options.ts'
import { type UserRule, userRule, userRulesFile } from './sanitize/user-rules.ts'

export interface ConversationsConfig {
  /** Default: the local model, which needs no network. */
  readonly model?: ModelConfig
  readonly extract?: ExtractSettings
  /** Default: nothing is uploaded. Publishing cannot be taken back. */
  readonly upload?: UploadSettings
  /** Rules beside the built-in ones. */
  readonly rules?: readonly UserRule[]
  /** Conversations that have not changed for longer are forgotten; default: they are kept. */
  readonly retentionDays?: number
}

const duration = z.custom<Duration>(isDuration, `is no duration; give one such as '4s'`)

function isDuration(value: unknown): boolean {
  try {
    parseDurationMs(typeof value === 'number' ? value : String(value), 'duration')
    return true
  } catch (error) {
    if (isMillraceError(error, 'ERR_OPTION_INVALID')) return false
    throw error
  }
}

const uploadSettings = z.strictObject({
  ipfsEndpoint: z.url({ protocol: /^https?$/ }),
  rpcUrl: z.url({ protocol: /^https?$/ }),
  chainId: z.int().positive(),
  contractAddress: z.string().regex(/^0x[0-9a-fA-F]{40}$/, 'is no address'),
  // A key itself must not stand in a file, a payload or a log.
  privateKeyRef: z.string().regex(KEY_REFERENCE, 'is no reference; give env:NAME or file:PATH'),
  confirmations: z.int().nonnegative().exactOptional(),
  poll: duration.exactOptional(),
  bumpAfter: duration.exactOptional(),
})

const rule = z.unknown().transform((candidate, context): UserRule => {
  try {
    return userRule(candidate)
  } catch (error) {
    context.addIssue({ code: 'custom', message: error instanceof Error ? error.message : 'is no rule' })
    return z.NEVER
  }
})

const configSchema = z.strictObject({
  model: modelConfigSchema.exactOptional(),
  extract: z
    .strictObject({
      minConfidence: z.number().min(0).max(1).exactOptional(),
      categories: z.array(z.string()).exactOptional(),
    })
    .exactOptional(),
  upload: uploadSettings.exactOptional(),
  rules: z.array(rule).exactOptional(),
  retentionDays: z.number().positive().max(36_500).exactOptional(),
})

/** Checks a configuration. Unknown names are refused. `where` begins the message. */
export function checkConfig(config: object, where: string): ConversationsConfig {
  const given = Object.fromEntries(Object.entries(config).filter(([, value]) => value !== undefined))
  return checkSettings(given, configSchema, where)
}

/**
 * Reads the configuration of a worker from a JSON file. Without a name it is `MILLRACE_CONVERSATIONS_CONFIG` or
 * ~/.millrace/conversations.json, which the hook reads too. Only the last need not exist.
 *
 * @example
 * const conversations = await openConversations({ ...loadConfig('./conversations.json'), log })
 */
export function loadConfig(
  file: string | null = null,
  env: Readonly<Record<string, string | undefined>> = process.env,
): ConversationsConfig {
  const name = file ?? userRulesFile(env)
  const text = name === null ? null : read(name)
  if (name === null || text === null) {
    // Nobody has named a file; one that is named must be there.
    if (file === null && (env.MILLRACE_CONVERSATIONS_CONFIG ?? '') === '') return {}
    throw new OptionError(`${name} does not exist; create it, or do not name it`)
  }
  const config = parsed(text)
  if (typeof config !== 'object' || config === null || Array.isArray(config)) {
    throw new OptionError(`${name} is not a JSON object; give { "model": …, "extract": …, "upload": … }`)
  }
  return checkConfig(config, name)
}

function read(file: string): string | null {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    const code = fieldOf(error, 'code')
    if (code === 'ENOENT') return null
    throw new OptionError(`${file} cannot be read (${String(code)}); check its path and permissions`)
  }
}

/** Undefined for text that is no JSON: the parser's message would quote it. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
