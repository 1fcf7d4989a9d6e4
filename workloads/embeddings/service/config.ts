/** The configuration file of `millrace start --preset embeddings`. */
import { z } from 'zod'
import { readConfig } from '../../config-file.ts'
import { embedderConfigSchema } from '../embedders/config.ts'

const settings = z.strictObject({
  /** Default: the one that counts words. */
  embedder: embedderConfigSchema.exactOptional(),
  /** A sqlite: or postgres: URL for the vectors; default: the engine's, or sqlite:./millrace.db beside an engine without tables. */
  database: z.string().exactOptional(),
  /** Of the vectors; default: entries. */
  namespace: z.string().min(1).max(200).exactOptional(),
  /** Embeddings at once in one process; default: 3. */
  maxConcurrency: z.int().positive().exactOptional(),
  /** Runs of one version in total; default: 3. */
  maxRetries: z.int().positive().exactOptional(),
  /** Of one run; default: 60 000. */
  timeoutMs: z.int().positive().exactOptional(),
})

export type EmbeddingsSettings = z.infer<typeof settings>

/** Without a file there are none. Unknown names are refused. */
export function loadSettings(file: string | null): EmbeddingsSettings {
  return readConfig(file, settings, '{ "embedder": { "kind": "openai", … } }')
}
