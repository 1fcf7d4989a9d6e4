/** Language models behind the two HTTP APIs that the conversation pipeline speaks too. */
import type { Log } from '../../../src/job/definition.ts'
import { type OptionNames, refuseUnknown } from '../../../src/job/known-options.ts'
import { type AnthropicApiOptions, anthropicApi } from '../../language-models/anthropic.ts'
import { approvedFetch } from '../../language-models/approved-fetch.ts'
import type { ChatReply, ModelCall } from '../../language-models/model-call.ts'
import { type OpenAiApiOptions, openAiApi } from '../../language-models/openai.ts'
import type { CompletionOptions, Llm } from './llm.ts'

export interface AnthropicLlmOptions extends AnthropicApiOptions {
  readonly log?: Log
}

export interface OpenAiLlmOptions extends OpenAiApiOptions {
  readonly log?: Log
}

const ANTHROPIC_OPTIONS: OptionNames<AnthropicLlmOptions> = {
  ...{ model: true, keyRef: true, url: true, env: true, clock: true, log: true },
}
const OPENAI_OPTIONS: OptionNames<OpenAiLlmOptions> = ANTHROPIC_OPTIONS

const REMEDY = 'configure a model that keeps to the length it is asked for'

/**
 * A model behind the Anthropic Messages API. It reaches that address and no other.
 *
 * @example
 * const llm = anthropicLlm({ model: 'claude-haiku-4-5', keyRef: 'env:ANTHROPIC_API_KEY' })
 */
export function anthropicLlm(options: AnthropicLlmOptions): Llm {
  refuseUnknown(options, ANTHROPIC_OPTIONS, 'anthropicLlm')
  const { log, ...rest } = options
  const { endpoint, send } = anthropicApi(rest)
  return llm(endpoint, log, (prompt, { maxTokens, temperature }, call) =>
    send({ max_tokens: maxTokens, temperature, messages: question(prompt) }, call, REMEDY),
  )
}

/**
 * A model behind the chat completions API of OpenAI, which Ollama, vLLM, LM Studio and others speak too. A server that refuses
 * the temperature or the limit of tokens is asked without them.
 *
 * @example
 * const llm = openAiLlm({ url: 'http://127.0.0.1:11434/v1', model: 'qwen3:8b' })
 */
export function openAiLlm(options: OpenAiLlmOptions): Llm {
  refuseUnknown(options, OPENAI_OPTIONS, 'openAiLlm')
  const { log, ...rest } = options
  const { endpoint, send } = openAiApi(rest)
  return llm(endpoint, log, (prompt, { maxTokens, temperature }, call) =>
    send(
      { messages: question(prompt) },
      { fields: { max_tokens: maxTokens, temperature }, refused: /max_tokens|temperature/ },
      call,
      REMEDY,
    ),
  )
}

type Ask = (prompt: string, options: CompletionOptions, call: ModelCall) => Promise<ChatReply>

function llm(endpoint: string, log: Log | undefined, ask: Ask): Llm {
  const fetch = approvedFetch({ endpoints: [endpoint], ...(log !== undefined && { log }) })
  const forever = new AbortController().signal
  return {
    complete: async (prompt, options, { signal = forever } = {}) => {
      const { text } = await ask(prompt, options, { signal, fetch })
      return { text }
    },
  }
}

function question(prompt: string): readonly object[] {
  return [{ role: 'user', content: prompt }]
}
