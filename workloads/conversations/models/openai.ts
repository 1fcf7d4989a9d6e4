import { z } from 'zod'
import { type OptionNames, refuseUnknown } from '../../../src/job/known-options.ts'
import { type Clock, systemClock } from '../../../src/time/clock.ts'
import { type ChatReply, chatModel } from './chat.ts'
import { type Environment, keyOf, modelName, urlBelow } from './config-values.ts'
import { type Model, ModelFailure } from './model.ts'
import { jsonOf, post } from './post.ts'
import type { AnswerForm } from './prompt.ts'

export interface OpenAiModelOptions {
  /** Up to and with the version, such as http://127.0.0.1:11434/v1 (Ollama). No default: it decides where text goes. */
  readonly url: string
  readonly model: string
  /** Where the API key is: `env:NAME`. Default: none, for servers of your own. */
  readonly keyRef?: string
  /** Characters of messages in one call; default: 8000, which fits a context of 4096 tokens. Raise it with the context. */
  readonly charsPerCall?: number
  readonly env?: Environment
  readonly clock?: Clock
}

const OPTIONS: OptionNames<OpenAiModelOptions> = {
  ...{ url: true, model: true, keyRef: true, charsPerCall: true, env: true, clock: true },
}

/** Ollama's default context has 4096 tokens, and it cuts a longer prompt without saying so. */
const CHARS_PER_CALL = 8_000

const replySchema = z.object({
  choices: z
    .array(
      z.object({
        message: z.object({ content: z.string().nullish(), refusal: z.string().nullish() }),
        finish_reason: z.string().nullish(),
      }),
    )
    .min(1),
  // Some servers of one's own count no tokens.
  usage: z.object({ prompt_tokens: z.number().nullish(), completion_tokens: z.number().nullish() }).nullish(),
})

/**
 * A model behind the chat completions API of OpenAI, which Ollama, vLLM, LM Studio, llama.cpp and others speak too. Neither a
 * temperature nor a limit of tokens is sent: some models refuse them, and servers disagree on their names.
 *
 * @example
 * const model = openAiModel({ url: 'http://127.0.0.1:11434/v1', model: 'qwen3:8b' })
 */
export function openAiModel(options: OpenAiModelOptions): Model {
  refuseUnknown(options, OPTIONS, 'openAiModel')
  const { clock = systemClock, keyRef, env = process.env } = options
  const model = modelName(options.model, 'openai')
  const url = urlBelow(options.url, 'chat/completions')
  const headers: Readonly<Record<string, string>> =
    keyRef === undefined ? {} : { authorization: `Bearer ${keyOf(keyRef, env)}` }
  // A server that refuses a JSON schema is not asked for it again: the prompt asks for JSON too.
  let takesSchema = true
  return chatModel({
    name: `openai:${model}`,
    endpoint: options.url,
    charsPerCall: options.charsPerCall ?? CHARS_PER_CALL,
    async ask({ system, user, answer }, call) {
      const messages = [
        { role: 'system', content: system },
        { role: 'user', content: user },
      ]
      const send = (format: object) => post(url, { headers, body: { model, messages, ...format }, call, clock })
      let posted = await send(takesSchema ? jsonSchema(answer) : {})
      if (takesSchema && posted.status === 400 && /response_format|json_schema/.test(posted.text)) {
        takesSchema = false
        posted = await send({})
      }
      return readReply(jsonOf(posted, url, keyRef ?? "'keyRef', which is not set,"))
    },
  })
}

/** LM Studio takes no `json_object`, and the others take a schema as well. */
function jsonSchema({ name, schema }: AnswerForm): object {
  return { response_format: { type: 'json_schema', json_schema: { name, strict: true, schema } } }
}

function readReply(json: unknown): ChatReply {
  const { success, data } = replySchema.safeParse(json)
  const choice = data?.choices[0]
  if (!success || choice === undefined) {
    throw new ModelFailure('the answer does not have the form of chat completions; check the URL of the model')
  }
  const { message, finish_reason: reason } = choice
  if (reason === 'length') {
    throw new ModelFailure("the model's answer was cut off (length); raise the server's limit or lower 'charsPerCall'")
  }
  if (reason === 'content_filter' || (message.refusal ?? '') !== '') {
    throw new ModelFailure('the model declined to answer; configure another model if it goes on')
  }
  return {
    text: message.content ?? '',
    usage: { inputTokens: data.usage?.prompt_tokens ?? 0, outputTokens: data.usage?.completion_tokens ?? 0 },
  }
}
