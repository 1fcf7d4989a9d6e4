import { OptionError } from '../../../src/errors.ts'
import type { Embedder } from '../embedder.ts'

export interface FunctionEmbedderOptions extends Omit<Embedder, 'embedBatch'> {
  /** Called with the texts of one batch; returns one vector for each, in order. */
  readonly embed: Embedder['embedBatch']
}

/**
 * An embedder of your own.
 *
 * @example
 * const embedder = functionEmbedder({ model: 'mine-2', dimensions: 768, embed: (texts) => model.encode(texts) })
 */
export function functionEmbedder({ embed, ...rest }: FunctionEmbedderOptions): Embedder {
  if (typeof embed !== 'function') throw new OptionError(`'embed' is not a function; give one from texts to vectors`)
  if (typeof rest.model !== 'string' || rest.model === '') {
    throw new OptionError(`the embedder has no 'model'; name it, because vectors of two models cannot be compared`)
  }
  return { ...rest, embedBatch: embed }
}
