/** The configuration file of `millrace start --preset framework`. */
import { z } from 'zod'
import type { Log } from '../../../src/job/definition.ts'
import type { Clock } from '../../../src/time/clock.ts'
import { readConfig } from '../../config-file.ts'
import { embedderConfigSchema } from '../../embeddings/embedders/config.ts'
import { anthropicLlm, openAiLlm } from '../../memories/llm/apis.ts'
import type { Llm } from '../../memories/llm/llm.ts'
import { localLlm } from '../../memories/llm/local.ts'
import { webhookSettings } from '../../webhooks/config.ts'

const name = z.string().min(1)

const settings = z.strictObject({
  /** A sqlite: or postgres: URL for webhooks, vectors and memories; default: the engine's, or sqlite:./millrace.db beside Redis. */
  database: z.string().exactOptional(),
  /** Default: the one that counts words. */
  embedder: embedderConfigSchema.exactOptional(),
  /** Writes what memories are merged into; default: one that only picks sentences. */
  model: z
    .discriminatedUnion('kind', [
      z.strictObject({ kind: z.literal('local') }),
      z.strictObject({
        kind: z.literal('anthropic'),
        model: name,
        keyRef: name.exactOptional(),
        url: z.url().exactOptional(),
      }),
      z.strictObject({ kind: z.literal('openai'), url: z.url(), model: name, keyRef: name.exactOptional() }),
    ])
    .exactOptional(),
  webhooks: webhookSettings.exactOptional(),
  /** The columns that embedding-batch may write; default: none. */
  sources: z
    .array(
      z.strictObject({
        table: name,
        column: name,
        id: name.exactOptional(),
        type: z.enum(['uuid', 'text']).exactOptional(),
      }),
    )
    .exactOptional(),
})

export type FrameworkSettings = z.infer<typeof settings>

/** Without a file there are none. Unknown names are refused. */
export function loadSettings(file: string | null): FrameworkSettings {
  return readConfig(file, settings, '{ "embedder": { "kind": "openai", … } }')
}

/** The model that the settings name; without one, it needs no network. */
export function llmFrom(
  config: FrameworkSettings['model'],
  parts: { readonly clock: Clock; readonly log: Log },
): { readonly llm: Llm; readonly name: string } {
  const named = config ?? { kind: 'local' }
  switch (named.kind) {
    case 'local':
      return { llm: localLlm(), name: 'local' }
    case 'anthropic': {
      const { kind: _, ...options } = named
      return { llm: anthropicLlm({ ...options, ...parts }), name: `anthropic:${named.model}` }
    }
    case 'openai': {
      const { kind: _, ...options } = named
      return { llm: openAiLlm({ ...options, ...parts }), name: `openai:${named.model}` }
    }
    default:
      return named satisfies never
  }
}
