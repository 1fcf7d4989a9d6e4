/** What can be kept in a bag. The bag writes down in it where it lies, so it can be in one bag at a time. */
export interface Bagged {
  /** -1 outside of a bag. */
  bagAt: number
}

/**
 * Things that come and go by the hundred thousand, in no order. Adding and removing is a write or two, where a map would
 * hash, grow and leave its outgrown tables to the collector of garbage.
 */
export class Bag<Item extends Bagged> {
  readonly #items: Item[] = []

  get size(): number {
    return this.#items.length
  }

  has(item: Item): boolean {
    // Reading an array before its beginning would be slow.
    return item.bagAt >= 0 && this.#items[item.bagAt] === item
  }

  add(item: Item): void {
    if (this.has(item)) return
    item.bagAt = this.#items.length
    this.#items.push(item)
  }

  /** False when it was not in here. */
  delete(item: Item): boolean {
    if (!this.has(item)) return false
    const last = this.#items.pop()
    if (last !== undefined && last !== item) {
      this.#items[item.bagAt] = last
      last.bagAt = item.bagAt
    }
    item.bagAt = -1
    return true
  }

  /** What is in it now; whoever goes through it may empty the bag meanwhile. */
  values(): Item[] {
    return this.#items.slice()
  }
}
