/**
 * Numbers from 0 up to 1 that are the same for the same seed, so that a failing test can be run again as it was.
 *
 * @example
 * const mill = await open('memory:', { random: seededRandom(7) })
 */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0
  // Mulberry32: 32 bits of state are plenty for jitter, and nothing here is a secret.
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
