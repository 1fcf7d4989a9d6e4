/** Offsets from `from` up to `to`, without `to` itself. */
export type Run = readonly [from: number, to: number]

/**
 * A set of offsets that is kept as runs: what was finished above a record that waits is nearly in one piece, however
 * far it reaches, and takes no more room for that.
 */
export class Runs implements Iterable<Run> {
  /** By where it begins, where it ends; and the other way round. */
  readonly #ends = new Map<number, number>()
  readonly #begins = new Map<number, number>()

  /** How many runs there are. */
  get size(): number {
    return this.#ends.size
  }

  /** Of offsets that are not in it yet. */
  add(from: number, to: number): void {
    if (from >= to) return
    const begin = this.#begins.get(from) ?? from
    const end = this.#ends.get(to) ?? to
    this.#begins.delete(from)
    this.#ends.delete(to)
    this.#ends.set(begin, end)
    this.#begins.set(end, begin)
  }

  /** Removes the run that begins there, and answers where it ended. */
  takeFrom(begin: number): number | null {
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
export function countOf(runs: Iterable<Run>, below: number = Number.POSITIVE_INFINITY): number {
  let count = 0
  for (const [from, to] of runs) count += Math.max(0, Math.min(to, below) - from)
  return count
}

/** In order, and joined where they touch. */
export function inOrder(runs: Iterable<Run>): readonly Run[] {
  const joined: [number, number][] = []
  for (const [from, to] of [...runs].sort(([one], [other]) => one - other)) {
    const last = joined.at(-1)
    if (last !== undefined && last[1] >= from) last[1] = Math.max(to, last[1])
    else joined.push([from, to])
  }
  return joined
}
