import { type OptionNames, refuseUnknown } from '../../../src/job/known-options.ts'
import { type OpenAiApiOptions, openAiApi } from '../../language-models/openai.ts'
import { chatModel } from './chat.ts'
import type { Model } from './model.ts'
import type { AnswerForm } from './prompt.ts'

export interface OpenAiModelOptions extends OpenAiApiOptions {
  /** Characters of messages in one call; default: 8000, which fits a context of 4096 tokens. Raise it with the context. */
  readonly charsPerCall?: number
}

const OPTIONS: OptionNames<OpenAiModelOptions> = {
  ...{ url: true, model: true, keyRef: true, charsPerCall: true, env: true, clock: true },
}

/** Ollama's default context has 4096 tokens, and it cuts a longer prompt without saying so. */
const CHARS_PER_CALL = 8_000
const REMEDY = "raise the server's limit or lower 'charsPerCall'"

/**
 * A model behind the chat completions API of OpenAI, which Ollama, vLLM, LM Studio, llama.cpp and others speak too. Neither a
 * temperature nor a limit of tokens is sent: some models refuse them, and servers disagree on their names.
 *
 * @example
 * const model = openAiModel({ url: 'http://127.0.0.1:11434/v1', model: 'qwen3:8b' })
 */
export function openAiModel(options: OpenAiModelOptions): Model {
  refuseUnknown(options, OPTIONS, 'openAiModel')
  const { charsPerCall = CHARS_PER_CALL, ...api } = options
  const { name, endpoint, send } = openAiApi(api)
  return chatModel({
    ...{ name, endpoint, charsPerCall },
    ask({ system, user, answer }, call) {
      const messages = [
        { role: 'system', content: system },
        { role: 'user', content: user },
      ]
      return send({ messages }, { fields: jsonSchema(answer), refused: /response_format|json_schema/ }, call, REMEDY)
    },
  })
}

/** LM Studio takes no `json_object`, and the others take a schema as well. */
function jsonSchema({ name, schema }: AnswerForm): object {
  return { response_format: { type: 'json_schema', json_schema: { name, strict: true, schema } } }
}
