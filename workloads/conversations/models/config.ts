import { z } from 'zod'
import { OptionError } from '../../../src/errors.ts'
import type { Clock } from '../../../src/time/clock.ts'
import type { Environment } from '../../language-models/config-values.ts'
import { anthropicModel } from './anthropic.ts'
import { localModel } from './local.ts'
import type { Model } from './model.ts'
import { openAiModel } from './openai.ts'

const name = z.string().min(1)
const charsPerCall = z.int().positive().exactOptional()

/** The part `model` of a configuration in JSON. Unknown fields are refused. */
export const modelConfigSchema = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('local'), names: z.enum(['auto', 'on', 'off']).exactOptional() }),
  z.strictObject({
    kind: z.literal('anthropic'),
    model: name,
    keyRef: name.exactOptional(),
    url: z.url().exactOptional(),
    maxTokens: z.int().positive().exactOptional(),
    charsPerCall,
  }),
  z.strictObject({ kind: z.literal('openai'), url: z.url(), model: name, keyRef: name.exactOptional(), charsPerCall }),
])

export type ModelConfig = z.infer<typeof modelConfigSchema>

export interface ModelParts {
  /** Where `env:NAME` is read; default: process.env. */
  readonly env?: Environment
  readonly clock?: Clock
}

/**
 * The model that a configuration names; without one, the local model, which needs no network.
 *
 * @example
 * const model = modelFrom({ kind: 'openai', url: 'http://127.0.0.1:11434/v1', model: 'qwen3:8b' })
 */
export function modelFrom(config: unknown, parts: ModelParts = {}): Model {
  const { data, error } = modelConfigSchema.safeParse(config ?? { kind: 'local' })
  if (error !== undefined) throw new OptionError(`the configuration of the model is invalid: ${problems(error)}`)
  switch (data.kind) {
    case 'local':
      return localModel(data.names === undefined ? {} : { names: data.names })
    case 'anthropic': {
      const { kind: _, ...options } = data
      return anthropicModel({ ...options, ...parts })
    }
    case 'openai': {
      const { kind: _, ...options } = data
      return openAiModel({ ...options, ...parts })
    }
    default:
      return data satisfies never
  }
}

/** Where and what, without the values: one of them could be a key in the wrong place. */
function problems({ issues }: z.ZodError): string {
  return issues
    .map(({ path, message, code }) => {
      const place = path.length === 0 ? 'model' : `model.${path.join('.')}`
      return code === 'invalid_union' ? `${place} is not one of local, anthropic, openai` : `${place}: ${message}`
    })
    .join('; ')
}
