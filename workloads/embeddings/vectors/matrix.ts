/** The vectors of a generation in memory, for an exact search without reading them again. */

/**
 * Memory is taken in blocks of this size, so that a small namespace takes little of it. It is also what is compared before others
 * get a turn: less than a millisecond.
 */
const BLOCK_BYTES = 1_048_576
const NUMBER_BYTES = Float32Array.BYTES_PER_ELEMENT

interface Scored {
  readonly number: number
  readonly score: number
}

/** The best of many, most similar first. */
export class Best {
  readonly #limit: number
  readonly #found: Scored[] = []
  #least: number

  constructor(limit: number, scoreMin: number) {
    this.#limit = limit
    // A score that equals the minimum counts.
    this.#least = scoreMin
  }

  offer(number: number, score: number): void {
    if (score < this.#least || (this.#found.length === this.#limit && score <= this.#least)) return
    let place = this.#found.length
    while (place > 0 && (this.#found[place - 1]?.score ?? 0) < score) place -= 1
    this.#found.splice(place, 0, { number, score })
    if (this.#found.length > this.#limit) this.#found.pop()
    if (this.#found.length === this.#limit) this.#least = this.#found.at(-1)?.score ?? this.#least
  }

  get numbers(): readonly number[] {
    return this.#found.map(({ number }) => number)
  }
}

/** Lets everything else that waits run first. */
export function othersTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

function rowsPerBlock(dimensions: number): number {
  return Math.max(1, Math.floor(BLOCK_BYTES / NUMBER_BYTES / dimensions))
}

/** What a matrix of so many rows takes. */
export function matrixBytes(dimensions: number, count: number): number {
  const rows = rowsPerBlock(dimensions)
  return Math.ceil(count / rows) * rows * dimensions * NUMBER_BYTES
}

/** Rows by their number in the table. The vectors have the length 1. */
export class Matrix {
  readonly #dimensions: number
  readonly #rowsPerBlock: number
  readonly #blocks: Float32Array[] = []
  /** The row number of each slot. The last slot takes the place of one that is removed. */
  readonly #numbers: number[] = []
  readonly #slots = new Map<number, number>()

  constructor(dimensions: number) {
    this.#dimensions = dimensions
    this.#rowsPerBlock = rowsPerBlock(dimensions)
  }

  get size(): number {
    return this.#numbers.length
  }

  get bytes(): number {
    return matrixBytes(this.#dimensions, this.#numbers.length)
  }

  set(number: number, vector: Float32Array): void {
    const slot = this.#slots.get(number) ?? this.#add(number)
    this.#row(slot).set(vector)
  }

  #add(number: number): number {
    const slot = this.#numbers.push(number) - 1
    this.#slots.set(number, slot)
    if (slot >= this.#blocks.length * this.#rowsPerBlock) {
      this.#blocks.push(new Float32Array(this.#rowsPerBlock * this.#dimensions))
    }
    return slot
  }

  /** Removes the rows that are not among these. */
  retain(numbers: ReadonlySet<number>): void {
    for (const number of [...this.#numbers]) if (!numbers.has(number)) this.#remove(number)
    this.#blocks.length = Math.ceil(this.#numbers.length / this.#rowsPerBlock)
  }

  #remove(number: number): void {
    const slot = this.#slots.get(number)
    const last = this.#numbers.pop()
    if (slot === undefined || last === undefined) return
    this.#slots.delete(number)
    if (last === number) return
    this.#row(slot).set(this.#row(this.#numbers.length))
    this.#numbers[slot] = last
    this.#slots.set(last, slot)
  }

  #row(slot: number): Float32Array {
    const start = (slot % this.#rowsPerBlock) * this.#dimensions
    const block = this.#blocks[Math.floor(slot / this.#rowsPerBlock)] ?? new Float32Array(0)
    return block.subarray(start, start + this.#dimensions)
  }

  /** Compares all rows, or those with these numbers, without blocking the event loop for more than a few milliseconds. */
  async search(query: Float32Array, best: Best, numbers: readonly number[] | null): Promise<void> {
    if (numbers !== null) return this.#searchSome(query, best, numbers)
    for (const [index, block] of this.#blocks.entries()) {
      const first = index * this.#rowsPerBlock
      const rows = Math.min(this.#rowsPerBlock, this.#numbers.length - first)
      for (let row = 0; row < rows; row += 1) {
        best.offer(this.#numbers[first + row] ?? 0, dot(query, block, row * this.#dimensions))
      }
      await othersTurn()
    }
  }

  async #searchSome(query: Float32Array, best: Best, numbers: readonly number[]): Promise<void> {
    for (const [index, number] of numbers.entries()) {
      const slot = this.#slots.get(number)
      if (slot !== undefined) best.offer(number, dot(query, this.#row(slot), 0))
      if (index % this.#rowsPerBlock === this.#rowsPerBlock - 1) await othersTurn()
    }
  }
}

/** Four sums let the processor work on four products at once, which halves the time. */
export function dot(one: Float32Array, other: Float32Array, start: number): number {
  // Each by itself: a destructured list takes longer than the products.
  let a = 0
  let b = 0
  let c = 0
  let d = 0
  const length = one.length
  let index = 0
  for (; index + 3 < length; index += 4) {
    a += (one[index] as number) * (other[start + index] as number)
    b += (one[index + 1] as number) * (other[start + index + 1] as number)
    c += (one[index + 2] as number) * (other[start + index + 2] as number)
    d += (one[index + 3] as number) * (other[start + index + 3] as number)
  }
  for (; index < length; index += 1) a += (one[index] as number) * (other[start + index] as number)
  return a + b + c + d
}
