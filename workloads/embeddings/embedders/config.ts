/** The part `embedder` of a configuration in JSON. */
import { z } from 'zod'
import type { Log } from '../../../src/job/definition.ts'
import type { Clock } from '../../../src/time/clock.ts'
import type { Embedder } from '../embedder.ts'
import { hashEmbedder } from './hash.ts'
import { openAiEmbedder } from './openai.ts'

/** Unknown fields are refused. */
export const embedderConfigSchema = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('hash'), dimensions: z.int().exactOptional() }),
  z.strictObject({
    kind: z.literal('openai'),
    url: z.url(),
    model: z.string().min(1),
    keyRef: z.string().exactOptional(),
    dimensions: z.int().positive().exactOptional(),
    threshold: z.number().min(-1).max(1).exactOptional(),
    textsPerCall: z.int().positive().exactOptional(),
  }),
])

export type EmbedderConfig = z.infer<typeof embedderConfigSchema>

/** The embedder that a configuration names; without one, the one that counts words, which needs no network, and a warning. */
export function embedderFrom(
  config: EmbedderConfig | undefined,
  parts: { readonly clock: Clock; readonly log: Log },
): Embedder {
  if (config === undefined)
    parts.log.warn('The embedder counts words and does not understand them; name a model in the configuration')
  const named = config ?? { kind: 'hash' }
  switch (named.kind) {
    case 'hash': {
      const { kind: _, ...options } = named
      return hashEmbedder(options)
    }
    case 'openai': {
      const { kind: _, ...options } = named
      return openAiEmbedder({ ...options, ...parts })
    }
    default:
      return named satisfies never
  }
}
