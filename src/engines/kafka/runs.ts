/** Offsets from `from` up to `to`, without `to` itself. */
export type Run = readonly [from: bigint, to: bigint]

/**
 * A set of offsets that is kept as runs: what was finished above a record that waits is nearly in one piece, however
 * far it reaches, and takes no more room for that.
 */
export class Runs implements Iterable<Run> {
  /** By where it begins, where it ends; and the other way round. */
  readonly #ends = new Map<bigint, bigint>()
  readonly #begins = new Map<bigint, bigint>()

  /** How many runs there are. */
  get size(): number {
    return this.#ends.size
  }

  /** Of offsets that are not in it yet. */
  add(from: bigint, to: bigint): void {
    if (from >= to) return
    const begin = this.#begins.get(from) ?? from
    const end = this.#ends.get(to) ?? to
    this.#begins.delete(from)
    this.#ends.delete(to)
    this.#ends.set(begin, end)
    this.#begins.set(end, begin)
  }

  /** Removes the run that begins there, and answers where it ended. */
  takeFrom(begin: bigint): bigint | null {
    const end = this.#ends.get(begin)
    if (end === undefined) return null
    this.#ends.delete(begin)
    this.#begins.delete(end)
    return end
  }

  /** In no particular order. */
  [Symbol.iterator](): Iterator<Run> {
    return this.#ends.entries()
  }
}

/** How many offsets are in runs that do not overlap; below a limit, if one is given. */
export function countOf(runs: Iterable<Run>, below: bigint | null = null): number {
  let count = 0n
  for (const [from, to] of runs) {
    const end = below !== null && below < to ? below : to
    if (end > from) count += end - from
  }
  return Number(count)
}

/** In order, and joined where they touch. */
export function inOrder(runs: Iterable<Run>): readonly Run[] {
  const joined: [bigint, bigint][] = []
  for (const [from, to] of [...runs].sort(([one], [other]) => (one < other ? -1 : 1))) {
    const last = joined.at(-1)
    if (last !== undefined && last[1] >= from) last[1] = to > last[1] ? to : last[1]
    else joined.push([from, to])
  }
  return joined
}
