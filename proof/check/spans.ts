/** A stretch of time, both ends included. */
export interface Span {
  readonly fromMs: number
  readonly toMs: number
}

/** Stretches of time that answer quickly whether another one meets them. */
export class Spans {
  /** In order, and none meets the next. */
  readonly #merged: readonly Span[]

  constructor(spans: readonly Span[]) {
    const merged: Span[] = []
    for (const span of spans.toSorted((a, b) => a.fromMs - b.fromMs)) {
      const last = merged.at(-1)
      if (last === undefined || span.fromMs > last.toMs) merged.push(span)
      else if (span.toMs > last.toMs) merged[merged.length - 1] = { fromMs: last.fromMs, toMs: span.toMs }
    }
    this.#merged = merged
  }

  get isEmpty(): boolean {
    return this.#merged.length === 0
  }

  meets(fromMs: number, toMs: number): boolean {
    const first = this.#merged[this.#firstEndingAt(fromMs)]
    return first !== undefined && first.fromMs <= toMs
  }

  /** How much of the stretch lies outside of them. */
  outsideMs(fromMs: number, toMs: number): number {
    let leftMs = toMs - fromMs
    for (let index = this.#firstEndingAt(fromMs); index < this.#merged.length; index += 1) {
      const span = this.#merged[index]
      if (span === undefined || span.fromMs > toMs) break
      leftMs -= Math.min(span.toMs, toMs) - Math.max(span.fromMs, fromMs)
    }
    return leftMs
  }

  #firstEndingAt(ms: number): number {
    return firstIndex(this.#merged.length, (index) => (this.#merged[index]?.toMs ?? 0) >= ms)
  }
}

/** The first index from 0 to `length` for which it holds, where it holds for all after it too; `length` if there is none. */
export function firstIndex(length: number, holds: (index: number) => boolean): number {
  let [low, high] = [0, length]
  while (low < high) {
    const middle = (low + high) >>> 1
    if (holds(middle)) high = middle
    else low = middle + 1
  }
  return low
}
