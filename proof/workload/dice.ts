import { seededRandom } from '../../src/testing/open-for-test.ts'

/** Choices that are the same for the same seed. */
export class Dice {
  readonly #random: () => number

  constructor(seed: number) {
    this.#random = seededRandom(seed)
  }

  /** From `least` to `most`, both included. */
  between(least: number, most: number): number {
    return least + Math.floor(this.#random() * (most - least + 1))
  }

  chance(share: number): boolean {
    return this.#random() < share
  }

  pick<Value>(values: readonly [Value, ...Value[]]): Value {
    return values[Math.floor(this.#random() * values.length)] ?? values[0]
  }

  shuffled<Value>(values: readonly Value[]): Value[] {
    const left = [...values]
    const taken: Value[] = []
    while (left.length > 0) taken.push(...left.splice(Math.floor(this.#random() * left.length), 1))
    return taken
  }
}
