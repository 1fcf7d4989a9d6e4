import { z } from 'zod'
import { type Clock, systemClock } from '../../src/time/clock.ts'
import { type Environment, keyOf, modelName, urlBelow } from './config-values.ts'
import { type ChatReply, type ModelCall, ModelFailure } from './model-call.ts'
import { jsonOf, post } from './post.ts'

/** Where a model is, for any kind of question. */
export interface OpenAiApiOptions {
  /** Up to and with the version, such as http://127.0.0.1:11434/v1 (Ollama). No default: it decides where text goes. */
  readonly url: string
  readonly model: string
  /** Where the API key is: `env:NAME`. Default: none, for servers of your own. */
  readonly keyRef?: string
  readonly env?: Environment
  readonly clock?: Clock
}

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

/** Fields of a request that not every server takes, and how those name them that do not. */
interface Wishes {
  readonly fields: object
  readonly refused: RegExp
}

/**
 * The API of chat completions itself. A server that refuses the `wishes` of a request gets it without them, then and from
 * there on. `remedy` says what helps against an answer that was cut off.
 */
export function openAiApi({
  url: endpoint,
  keyRef,
  env = process.env,
  clock = systemClock,
  ...options
}: OpenAiApiOptions) {
  const model = modelName(options.model, 'openai')
  const url = urlBelow(endpoint, 'chat/completions')
  const headers: Readonly<Record<string, string>> =
    keyRef === undefined ? {} : { authorization: `Bearer ${keyOf(keyRef, env)}` }
  let takesWishes = true
  const send = async (body: object, wishes: Wishes, call: ModelCall, remedy: string): Promise<ChatReply> => {
    const request = (more: object) => post(url, { headers, body: { model, ...body, ...more }, call, clock })
    let posted = await request(takesWishes ? wishes.fields : {})
    if (takesWishes && posted.status === 400 && wishes.refused.test(posted.text)) {
      takesWishes = false
      posted = await request({})
    }
    return readReply(jsonOf(posted, url, keyRef ?? "'keyRef', which is not set,"), remedy)
  }
  return { name: `openai:${model}`, endpoint, send }
}

function readReply(json: unknown, remedy: string): ChatReply {
  const { success, data } = replySchema.safeParse(json)
  const choice = data?.choices[0]
  if (!success || choice === undefined) {
    throw new ModelFailure('the answer does not have the form of chat completions; check the URL of the model')
  }
  const { message, finish_reason: reason } = choice
  if (reason === 'length') {
    throw new ModelFailure(`the model's answer was cut off (length); ${remedy}`)
  }
  if (reason === 'content_filter' || (message.refusal ?? '') !== '') {
    throw new ModelFailure('the model declined to answer; configure another model if it goes on')
  }
  return {
    text: message.content ?? '',
    usage: { inputTokens: data.usage?.prompt_tokens ?? 0, outputTokens: data.usage?.completion_tokens ?? 0 },
  }
}
