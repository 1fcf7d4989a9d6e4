/** An item of an IndexedSet. The set stores the item's index in it, so an item is in one set at a time. */
export interface Indexed {
  /** -1 outside of a set. */
  setIndex: number
}

/**
 * A set without order for items that come and go by the hundred thousand. Adding and removing is a write or two; a Map
 * would hash, grow and leave its old tables to the garbage collector.
 */
export class IndexedSet<Item extends Indexed> {
  readonly #items: Item[] = []

  get size(): number {
    return this.#items.length
  }

  has(item: Item): boolean {
    // Reading an array before its beginning would be slow.
    return item.setIndex >= 0 && this.#items[item.setIndex] === item
  }

  add(item: Item): void {
    if (this.has(item)) return
    item.setIndex = this.#items.length
    this.#items.push(item)
  }

  /** False when it was not in here. */
  delete(item: Item): boolean {
    if (!this.has(item)) return false
    const last = this.#items.pop()
    if (last !== undefined && last !== item) {
      this.#items[item.setIndex] = last
      last.setIndex = item.setIndex
    }
    item.setIndex = -1
    return true
  }

  /** A copy: the set may be emptied while it is iterated. */
  values(): Item[] {
    return this.#items.slice()
  }
}
