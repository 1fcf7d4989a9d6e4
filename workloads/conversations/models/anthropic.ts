import { type OptionNames, refuseUnknown } from '../../../src/job/known-options.ts'
import { type AnthropicApiOptions, anthropicApi } from '../../language-models/anthropic.ts'
import { chatModel } from './chat.ts'
import type { Model } from './model.ts'

export interface AnthropicModelOptions extends AnthropicApiOptions {
  /** Tokens of one answer; default: 8192. An answer that needs more is an error. */
  readonly maxTokens?: number
  /** Characters of messages in one call; default: 50000. A longer conversation takes several calls, one after another. */
  readonly charsPerCall?: number
}

const OPTIONS: OptionNames<AnthropicModelOptions> = {
  ...{ model: true, keyRef: true, url: true, maxTokens: true, charsPerCall: true, env: true, clock: true },
}

const MAX_TOKENS = 8_192
const CHARS_PER_CALL = 50_000
const REMEDY = "raise 'maxTokens' or lower 'charsPerCall'"

/**
 * A model behind the Anthropic Messages API.
 *
 * @example
 * const model = anthropicModel({ model: 'claude-haiku-4-5', keyRef: 'env:ANTHROPIC_API_KEY' })
 */
export function anthropicModel(options: AnthropicModelOptions): Model {
  refuseUnknown(options, OPTIONS, 'anthropicModel')
  const { maxTokens = MAX_TOKENS, charsPerCall = CHARS_PER_CALL, ...api } = options
  const { name, endpoint, send } = anthropicApi(api)
  return chatModel({
    ...{ name, endpoint, charsPerCall },
    ask: ({ system, user }, call) =>
      send({ max_tokens: maxTokens, system, messages: [{ role: 'user', content: user }] }, call, REMEDY),
  })
}
