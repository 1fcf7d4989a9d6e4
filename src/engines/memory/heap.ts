/** The item's index in its heap; -1 without one. Written by the heap only. */
export interface Heaped {
  heapIndex: number
}

/** A binary heap whose items know their index, so a cancelled or superseded job is removed in O(log n) too. */
export class Heap<Item extends Heaped> {
  readonly #items: Item[] = []
  readonly #isBefore: (a: Item, b: Item) => boolean

  constructor(isBefore: (a: Item, b: Item) => boolean) {
    this.#isBefore = isBefore
  }

  get first(): Item | undefined {
    return this.#items[0]
  }

  push(item: Item): void {
    item.heapIndex = this.#items.length
    this.#items.push(item)
    this.#rise(item)
  }

  has(item: Item): boolean {
    return this.#items[item.heapIndex] === item
  }

  /** False when the item is not in this heap. */
  remove(item: Item): boolean {
    if (!this.has(item)) return false
    const last = this.#items.pop()
    const gap = item.heapIndex
    item.heapIndex = -1
    if (last === undefined || last === item) return true
    this.#put(last, gap)
    this.#rise(last)
    this.#sink(last)
    return true
  }

  #rise(item: Item): void {
    for (;;) {
      const index = item.heapIndex
      const parent = this.#items[(index - 1) >> 1]
      if (index === 0 || parent === undefined || !this.#isBefore(item, parent)) return
      this.#put(item, parent.heapIndex)
      this.#put(parent, index)
    }
  }

  #sink(item: Item): void {
    for (;;) {
      const index = item.heapIndex
      const left = this.#items[2 * index + 1]
      const right = this.#items[2 * index + 2]
      if (left === undefined) return
      const child = right !== undefined && this.#isBefore(right, left) ? right : left
      if (!this.#isBefore(child, item)) return
      this.#put(item, child.heapIndex)
      this.#put(child, index)
    }
  }

  #put(item: Item, index: number): void {
    this.#items[index] = item
    item.heapIndex = index
  }
}
