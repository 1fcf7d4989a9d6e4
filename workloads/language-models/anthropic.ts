import { z } from 'zod'
import { type Clock, systemClock } from '../../src/time/clock.ts'
import { type Environment, keyOf, modelName, urlBelow } from './config-values.ts'
import { type ChatReply, type ModelCall, ModelFailure } from './model-call.ts'
import { jsonOf, post } from './post.ts'

/** Where a model is, for any kind of question. */
export interface AnthropicApiOptions {
  /** The name of a model. There is no default: you choose what reads your text, and what it costs. */
  readonly model: string
  /** Where the API key is: `env:NAME` of an environment variable; default: `env:ANTHROPIC_API_KEY`. */
  readonly keyRef?: string
  /** Default: https://api.anthropic.com. */
  readonly url?: string
  readonly env?: Environment
  readonly clock?: Clock
}

const URL_DEFAULT = 'https://api.anthropic.com'
const KEY_DEFAULT = 'env:ANTHROPIC_API_KEY'
const API_VERSION = '2023-06-01'

const replySchema = z.object({
  content: z.array(z.object({ type: z.string(), text: z.string().optional() })),
  stop_reason: z.string().nullable(),
  usage: z.object({
    input_tokens: z.number(),
    output_tokens: z.number(),
    cache_creation_input_tokens: z.number().nullish(),
    cache_read_input_tokens: z.number().nullish(),
  }),
})

/** The Messages API itself. `remedy` says what helps against an answer that was cut off. */
export function anthropicApi({ url: endpoint = URL_DEFAULT, keyRef = KEY_DEFAULT, ...options }: AnthropicApiOptions) {
  const { env = process.env, clock = systemClock } = options
  const model = modelName(options.model, 'anthropic')
  const url = urlBelow(endpoint, 'v1/messages')
  const headers = { 'x-api-key': keyOf(keyRef, env), 'anthropic-version': API_VERSION }
  const send = async (body: object, call: ModelCall, remedy: string): Promise<ChatReply> => {
    const posted = await post(url, { headers, body: { model, ...body }, call, clock })
    return readReply(jsonOf(posted, url, keyRef), remedy)
  }
  return { name: `anthropic:${model}`, endpoint, send }
}

function readReply(json: unknown, remedy: string): ChatReply {
  const { success, data } = replySchema.safeParse(json)
  if (!success)
    throw new ModelFailure('the answer does not have the form of the Messages API; check the URL of the model')
  const { content, stop_reason: reason, usage } = data
  if (reason === 'max_tokens' || reason === 'model_context_window_exceeded') {
    throw new ModelFailure(`the model's answer was cut off (${reason}); ${remedy}`)
  }
  if (reason === 'refusal')
    throw new ModelFailure('the model declined to answer; configure another model if it goes on')
  return {
    text: content.flatMap(({ type, text }) => (type === 'text' && text !== undefined ? [text] : [])).join(''),
    usage: {
      inputTokens: usage.input_tokens + (usage.cache_creation_input_tokens ?? 0) + (usage.cache_read_input_tokens ?? 0),
      outputTokens: usage.output_tokens,
    },
  }
}
