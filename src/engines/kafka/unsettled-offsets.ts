/** How many of the newest offsets are bytes in the ring. A power of two. */
const RING = 8_192
const PLACE = RING - 1

/** What a byte says of its offset. */
const [CLOSED, READ, STARTED] = [0, 1, 2]

/**
 * Offsets that were read and are not settled, and whether one start is all that there is to tell of each. They come in
 * order and most are settled soon: so the newest are bytes in a ring, and the few that stay longer are in a map.
 */
export class UnsettledOffsets {
  readonly #ring = new Uint8Array(RING)
  readonly #old = new Map<number, boolean>()
  /** Behind the newest. */
  #end = 0
  #size = 0

  get size(): number {
    return this.#size
  }

  /** Above all that were added before. */
  add(offset: number): void {
    const passedTo = Math.min(offset + 1, this.#end + RING)
    for (let end = this.#end; end < passedTo; end += 1) this.#retire(end - RING)
    this.#ring[offset & PLACE] = READ
    this.#end = offset + 1
    this.#size += 1
  }

  has(offset: number): boolean {
    return this.#isInRing(offset) ? this.#ring[offset & PLACE] !== CLOSED : this.#old.has(offset)
  }

  isStarted(offset: number): boolean {
    return this.#isInRing(offset) ? this.#ring[offset & PLACE] === STARTED : this.#old.get(offset) === true
  }

  /** Of one that is open. */
  setStarted(offset: number, isStarted: boolean): void {
    if (this.#isInRing(offset)) this.#ring[offset & PLACE] = isStarted ? STARTED : READ
    else this.#old.set(offset, isStarted)
  }

  /** False when it was not open. */
  delete(offset: number): boolean {
    if (!this.has(offset)) return false
    if (this.#isInRing(offset)) this.#ring[offset & PLACE] = CLOSED
    else this.#old.delete(offset)
    this.#size -= 1
    return true
  }

  /** `from`: there are none below. */
  *started(from: number): Iterable<number> {
    for (const [offset, isStarted] of this.#old) if (isStarted) yield offset
    for (let offset = Math.max(from, this.#end - RING); offset < this.#end; offset += 1) {
      if (this.#ring[offset & PLACE] === STARTED) yield offset
    }
  }

  #isInRing(offset: number): boolean {
    return offset >= this.#end - RING && offset < this.#end
  }

  /** Its place is needed for a newer one. */
  #retire(offset: number): void {
    const state = this.#ring[offset & PLACE]
    if (state === CLOSED) return
    this.#old.set(offset, state === STARTED)
    this.#ring[offset & PLACE] = CLOSED
  }
}
