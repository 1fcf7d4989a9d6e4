import { z } from 'zod'
import { OptionError } from '../../../src/errors.ts'
import type { Log } from '../../../src/job/definition.ts'
import { type OptionNames, refuseUnknown } from '../../../src/job/known-options.ts'
import { type Clock, systemClock } from '../../../src/time/clock.ts'
import { approvedFetch } from '../../language-models/approved-fetch.ts'
import { type Environment, keyOf, modelName, urlBelow } from '../../language-models/config-values.ts'
import { ModelFailure } from '../../language-models/model-call.ts'
import { jsonOf, post } from '../../language-models/post.ts'
import type { Embedder } from '../embedder.ts'

export interface OpenAiEmbedderOptions {
  /** Up to and with the version, such as http://127.0.0.1:11434/v1 (Ollama). No default: it decides where text goes. */
  readonly url: string
  readonly model: string
  /** Where the API key is: `env:NAME`. Default: none, for servers of your own. */
  readonly keyRef?: string
  /** Asked of models that can shorten their vectors, and checked. Default: what the model returns. */
  readonly dimensions?: number
  /** The cosine similarity above which two texts are about the same; it differs from model to model. Default: 0.8. */
  readonly threshold?: number
  /** Texts of one request. Default: 32, at most 2048. */
  readonly textsPerCall?: number
  readonly env?: Environment
  readonly clock?: Clock
  readonly log?: Log
}

const OPTIONS: OptionNames<OpenAiEmbedderOptions> = {
  ...{ url: true, model: true, keyRef: true, dimensions: true, threshold: true, textsPerCall: true },
  ...{ env: true, clock: true, log: true },
}

const TEXTS_PER_CALL = 32
const TEXTS_PER_CALL_MAX = 2_048

const answerSchema = z.object({
  data: z.array(z.object({ index: z.int().min(0), embedding: z.array(z.number()) })),
})

/**
 * A model behind the embeddings API of OpenAI, which Ollama, vLLM, LM Studio, llama.cpp and others speak too. Requests go to this
 * URL alone. Without a connection the job waits without using an attempt, and a Retry-After is kept to.
 *
 * @example
 * const embedder = openAiEmbedder({ url: 'http://127.0.0.1:11434/v1', model: 'nomic-embed-text' })
 */
export function openAiEmbedder(options: OpenAiEmbedderOptions): Embedder {
  refuseUnknown(options, OPTIONS, 'openAiEmbedder')
  const { clock = systemClock, keyRef, env = process.env, dimensions, threshold, log } = options
  const { textsPerCall = TEXTS_PER_CALL } = options
  if (!Number.isInteger(textsPerCall) || textsPerCall < 1 || textsPerCall > TEXTS_PER_CALL_MAX) {
    throw new OptionError(`'textsPerCall' is ${textsPerCall}; give a whole number from 1 to ${TEXTS_PER_CALL_MAX}`)
  }
  const model = modelName(options.model, 'openai')
  const url = urlBelow(options.url, 'embeddings')
  const headers: Readonly<Record<string, string>> =
    keyRef === undefined ? {} : { authorization: `Bearer ${keyOf(keyRef, env)}` }
  const fetch = approvedFetch({ endpoints: [options.url], ...(log !== undefined && { log }) })

  const ask = async (texts: readonly string[], signal: AbortSignal): Promise<readonly (readonly number[])[]> => {
    const body = { model, input: texts, encoding_format: 'float', ...(dimensions !== undefined && { dimensions }) }
    const posted = await post(url, { headers, body, call: { signal, fetch }, clock })
    return inOrder(jsonOf(posted, url, keyRef ?? "'keyRef', which is not set,"), texts.length)
  }
  return {
    model: `openai:${model}`,
    ...(dimensions !== undefined && { dimensions }),
    ...(threshold !== undefined && { threshold }),
    async embedBatch(texts, { signal = new AbortController().signal } = {}) {
      const vectors: (readonly number[])[] = []
      for (let start = 0; start < texts.length; start += textsPerCall) {
        vectors.push(...(await ask(texts.slice(start, start + textsPerCall), signal)))
      }
      return vectors
    },
  }
}

/** Servers may answer in any order and say by `index` which text a vector is of. */
function inOrder(json: unknown, count: number): readonly (readonly number[])[] {
  const { success, data: answer } = answerSchema.safeParse(json)
  if (!success) {
    throw new ModelFailure('the answer does not have the form of embeddings; check the URL of the embedder')
  }
  const vectors = new Map(answer.data.map(({ index, embedding }) => [index, embedding]))
  if (answer.data.length !== count || vectors.size !== count) {
    throw new ModelFailure(
      `the answer has ${answer.data.length} vectors for ${count} texts; check the embedder's server`,
    )
  }
  return Array.from({ length: count }, (_, index) => {
    const vector = vectors.get(index)
    if (vector === undefined) throw new ModelFailure(`the answer has no vector for text ${index}; check the server`)
    return vector
  })
}
